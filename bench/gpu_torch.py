"""PyTorch's side of bench/gpu: one step of something at a time, measured when stdin says so.

Lines, each answered by one: make VARIANT KIND ..., run VARIANT N, drop. KIND and what follows is as in gpu_serve.c.
VARIANT is eager, compile or graphs; several may be made of one thing and then take turns.
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"
TF32 = "tf32" in sys.argv[2:]
GPU = DEVICE == "cuda"
torch.backends.cuda.matmul.allow_tf32 = TF32
torch.backends.cudnn.allow_tf32 = TF32
torch.backends.cudnn.benchmark = True


def wait():
    if GPU:
        torch.cuda.synchronize()


class Bottleneck(nn.Module):
    """With the stride in the first convolution, as MXNet's resnet50_v1 has it."""

    def __init__(self, before, channels, stride):
        super().__init__()
        inner = channels // 4
        self.body = nn.Sequential(
            nn.Conv2d(before, inner, 1, stride), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, 1, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(),
            nn.Conv2d(inner, channels, 1), nn.BatchNorm2d(channels))
        self.skip = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)) \
            if before != channels or stride != 1 else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet50():
    layers, before = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for stage, (count, channels) in enumerate(((3, 256), (4, 512), (6, 1024), (3, 2048))):
        for i in range(count):
            layers.append(Bottleneck(before, channels, 2 if stage and not i else 1))
            before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def lenet():
    return nn.Sequential(nn.Conv2d(1, 20, 5, padding=2), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5, padding=2), nn.Tanh(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(50 * 49, 500), nn.Tanh(), nn.Linear(500, 10))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)
        self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)

    def forward(self, x):  # (N, T, UNITS)
        n, t, _ = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, 12, 64).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, 768)
        x = self.first(x + self.out(y))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.Sequential(*(Layer() for _ in range(12))), nn.Linear(768, 2)

    def forward(self, x):
        return self.head(self.layers(x)[:, 0])


NETS = {"zoo:resnet50_v1": (resnet50, (3, 224, 224), 10), "zoo:lenet": (lenet, (1, 28, 28), 10),
        "zoo:mlp": (mlp, (1, 28, 28), 10), "bert": (Bert, (128, 768), 2)}


def net_step(kind, name, batch, dtype):
    """A step, and what torch.compile is for."""
    make, shape, classes = NETS[name]
    net, kind_of = make().to(DEVICE), getattr(torch, dtype)
    x = (torch.rand(int(batch), *shape, device=DEVICE) / 4 - 0.125).to(kind_of)
    net = net.to(kind_of)
    if name == "zoo:resnet50_v1":  # what cuDNN is fastest with
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if kind == "infer":
        net.eval()

        def infer():
            with torch.no_grad():
                return net(x)
        return infer, infer
    labels = torch.arange(int(batch), device=DEVICE) % classes
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0001, momentum=0.9, foreach=True)

    def forward():
        return F.cross_entropy(net(x).float(), labels)

    def train(forward=forward):
        optimizer.zero_grad(set_to_none=False)
        forward().backward()
        optimizer.step()
    return train, forward


def chain_step(length, size):
    x, count = torch.rand(int(size), device=DEVICE), int(length)

    def chain():
        with torch.no_grad():
            y = x
            for i in range(count):
                y = torch.relu(y) if i % 2 else y + 0.001
            return y
    return chain, chain


def gemm_step(m, n, k, dtype):
    kind = getattr(torch, dtype)
    a, b = torch.rand(int(m), int(k), device=DEVICE).to(kind), torch.rand(int(k), int(n), device=DEVICE).to(kind)
    c = torch.empty(int(m), int(n), device=DEVICE, dtype=kind)

    def product():
        torch.mm(a, b, out=c)
    return product, None


def copy_step(size):
    a = torch.rand(int(size) // 4, device=DEVICE)
    b = torch.empty_like(a)

    def copied():
        b.copy_(a)
    return copied, None


def captured(step):
    """As a CUDA graph, after the warm-up on a stream of its own that capture asks for."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay():
        graph.replay()
    replay.step = step  # its weights and inputs are the graph's
    return replay


def make(variant, kind, *words):
    makers = {"chain": chain_step, "gemm": gemm_step, "copy": copy_step}
    step, inner = makers[kind](*words) if kind in makers else net_step(kind, *words)
    if variant == "graphs":
        return captured(step)
    if variant != "compile":
        return step
    if inner is None:
        raise ValueError("there is nothing to compile")
    compiled = torch.compile(inner)
    return (lambda: step(compiled)) if kind == "train" else compiled


def answer(text):
    print(text.replace("\n", " ")[:500], flush=True)


def main():
    steps = {}
    answer("ready torch %s%s" % (torch.__version__, ", " + torch.cuda.get_device_name() if GPU else ""))
    for line in sys.stdin:
        words = line.split()
        try:
            if words[0] == "make":
                steps[words[1]] = make(*words[1:])
                steps[words[1]]()
                wait()
                answer("made")
            elif words[0] == "run":
                step, count = steps[words[1]], int(words[2])
                wait()
                start = time.perf_counter()
                for _ in range(count):
                    step()
                wait()
                answer("ms %.6f" % ((time.perf_counter() - start) * 1e3))
            else:
                steps.clear()
                if GPU:
                    torch.cuda.empty_cache()
                answer("dropped")
        except Exception as failure:  # said to bench/gpu, which goes on with the next row
            steps.pop(words[1], None) if len(words) > 1 else None
            answer("error %s: %s" % (type(failure).__name__, failure))


main()
