#!/usr/bin/env python3
"""Every gate turns red when the fault it is for is planted in a copy of the tree, and is what it was without it."""
import concurrent.futures
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile

import common
import symbols

PLUGIN_H = "sdk/include/tenon/plugin/plugin.h"
BASE_H = "sdk/include/tenon/plugin/base.h"
LONG_FUNCTION = "int planted(void);\nint planted(void)\n{\n" + "    ;\n" * 70 + "    return 0;\n}\n"


def replace(root, name, old, new):
    text = common.read(root, name)
    assert old in text, "%s: no \"%s\" to plant a fault at" % (name, old)
    with open(os.path.join(root, name), "w", encoding="utf-8") as out:
        out.write(text.replace(old, new, 1))


def write(root, name, text):
    os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
    with open(os.path.join(root, name), "a", encoding="utf-8") as out:
        out.write(text)


def file_fault(name, text):
    return lambda root: write(root, name, text)


def text_fault(name, old, new):
    return lambda root: replace(root, name, old, new)


# gate, the fault, how to plant it, what the gate must say
FAULTS = [
    ("layers.py", "a lower room includes a higher one", file_fault("core/base/planted.c", '#include "engine/engine.h"\n'),
     "may not include"),
    ("layers.py", "a way around the door", file_fault("core/engine/planted.c", '#include "device/hidden.h"\n'),
     "past the door"),
    ("layers.py", "a plugin includes the core", file_fault("plugins/cpu/plain/planted.c", '#include "base/base.h"\n'),
     "lies outside"),
    ("layers.py", "a plugin includes a program's header", file_fault("plugins/mempool/planted.c",
                                                                      "#include <tenon/base.h>\n"), "may not include"),
    ("layers.py", "nn reaches into the core", file_fault("nn/planted.c", '#include "../core/base/base.h"\n'), "lies outside"),
    ("style.py", "a function of 73 lines", file_fault("core/base/planted.c", LONG_FUNCTION), "planted: 73 lines"),
    ("style.py", "a file of 801 lines", file_fault("core/base/planted.c", "int x;\n" * 801), "801 lines"),
    ("style.py", "a line of 111 columns", file_fault("core/base/planted.c", "/*" + "x" * 107 + "*/\n"), "111 columns"),
    ("style.py", "a kernel with words of CUDA", file_fault("plugins/cuda/kernels/planted.cu", "x = atomicAdd(&y, 1);\n"),
     "atomicAdd: kernels use"),
    ("style.py", "a kernel's global variable", file_fault("plugins/cuda/kernels/planted.cu", "static double sum;\n"),
     "a variable of a device"),
    ("style.py", "a tab", file_fault("core/base/planted.c", "\tint x;\n"), "a tab"),
    ("style.py", "one more exception", file_fault("tests/gates/style.exceptions", "core/base/gone.c file -\n"),
     "not needed any more"),
    ("lines.py", "an emulator that has grown", file_fault("tests/cuda/emulator/planted.c", "int x;\n" * 2500),
     "tests/cuda/emulator/: "),
    ("words.py", "a path of one machine", file_fault("docs/planted.md", "see /ho" + "me/somebody/tenon\n"), "absolute path"),
    ("words.py", "a mark of unfinished work", file_fault("core/base/planted.c", "/* TO" + "DO */\n"), "unfinished"),
    ("docs.py", "a public function without a comment", file_fault("sdk/include/tenon/planted.h",
                                                                  "TN_API int tn_planted(void);\n"), "has no comment"),
    ("docs.py", "a comment that says nothing of threads", file_fault(
        "sdk/include/tenon/planted.h", "/** Planted. @since 0.1 */\nTN_API int tn_planted(void);\n"), "lacks @threads"),
    ("docs.py", "an option that the manual lacks", file_fault(
        "core/base/options.list", "TN_OPTION(\"planted.key\", \"int\")\n"), "planted.key is missing"),
    ("options.py", "an option that nobody reads", file_fault(
        "core/base/options.list", "TN_OPTION(\"planted.unread_key\", \"int\", INIT)\n"), "nothing reads planted.unread_key"),
    ("docs.py", "a link that leads nowhere", file_fault("docs/planted.md", "[x](gone.md)\n"), "leads nowhere"),
    ("docs.py", "a link to a heading that is not there", file_fault("docs/planted.md", "# Here\n[x](#there)\n"),
     "no heading #there"),
    ("docs.py", "a page that docs/README.md does not name", file_fault("docs/planted.md", "# Planted\n"),
     "does not name docs/planted.md"),
    ("docs.py", "a decision that its list does not name", file_fault("docs/decisions/9998-planted.md", "# 9998. Planted\n"),
     "does not name docs/decisions/9998-planted.md"),
    ("docs.py", "a README that names what is gone", file_fault("nn/planted/README.md", "`gone_for_good.c`\n"),
     "no file gone_for_good.c"),
    ("docs.py", "a folder without a README", lambda root: os.remove(os.path.join(root, "core/op/README.md")),
     "core/op has no README"),
    ("docs.py", "a decision without its parts", file_fault("docs/decisions/9999-planted.md", "# 9999. Planted\n"),
     "no part"),
    ("headers.py", "a header that needs another first", file_fault("sdk/include/tenon/planted.h", "extern tn_status x;\n"),
     "planted.h"),
    ("headers.py", "a header that C++ refuses", file_fault("sdk/include/tenon/planted.h", "extern int class;\n"), "c++"),
    ("abi.py", "a member inserted in the middle", text_fault(PLUGIN_H, "    void (*fini)(void *plugin);",
                                                             "    void (*planted)(void);\n    void (*fini)(void *plugin);"),
     "not at the end"),
    ("abi.py", "a member removed", text_fault(PLUGIN_H, "    void (*fini)(void *plugin);", ""), "gone"),
    ("abi.py", "a function that takes one argument more", text_fault(PLUGIN_H, "(*fini)(void *plugin)",
                                                                     "(*fini)(void *plugin, uint32_t planted)"), "was"),
    ("abi.py", "a constant changed", text_fault(BASE_H, "#define TN_I8 5", "#define TN_I8 15"), "#TN_I8: was 5"),
    ("abi.py", "choices in another order",
     text_fault("sdk/include/tenon/plugin/op/index.h", "C(op, name, clip) C(op, name, wrap)",
                "C(op, name, wrap) C(op, name, clip)"), "#TN_pick_mode_clip: was 0"),
    ("abi.py", "an attribute inserted in front of another",
     text_fault("sdk/include/tenon/plugin/op/scalar.h", "X(scalar, BOOL, is_int",
                'X(scalar, BOOL, planted, "0", TN_ANY, "") X(scalar, BOOL, is_int'), "#TN_scalar_is_int: was 1"),
    ("abi.py", "a frozen struct that grows", text_fault(BASE_H, "    uint64_t reserved[3];",
                                                        "    uint64_t reserved[3];\n    uint64_t planted;"), "may not grow"),
    ("abi.py", "a kind that becomes a sketch again", text_fault("sdk/include/tenon/plugin/transport.h", "/**\n * A transport",
                                                                "/**\n * Sketch: a transport"), "tn_transport_ops: was"),
    ("abi.py", "a type that may not cross", text_fault(PLUGIN_H, "    void (*fini)(void *plugin);",
                                                       "    long (*fini)(void *plugin);"), "R1"),
    ("data.sh", "an image with another byte", lambda root: flip_byte(root, "examples/data/digits/train-images-idx3-ubyte"),
     "FAILED"),
]
if shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc"): # without it the gate is a skip
    FAULTS += [("bodies.sh", "a row that only C understands", file_fault(
        "plugins/common/loops.list", "LOOP1(PLANTED, 1.0f, planted_in_c(a))\n"), "planted_in_c")]


def fake_build(root, library_extra, plugin_source, left_out):
    """A build folder as symbols.py and dead.py read it: libraries with the declared names, a list of compiled files."""
    build = os.path.join(root, "build-fake")
    os.makedirs(os.path.join(build, "lib/tenon/plugins-1"))
    headers = [name for name in common.tree_files(root) if re.match(r"sdk/include/tenon/[^/]+\.h$", name)]
    for library, names in (("libtenon.so", [h for h in headers if "/nn" not in h]),
                           ("libtenon-nn.so", [h for h in headers if "/nn" in h])):
        text = "".join("int %s;\n" % name for name in sorted(symbols.declared(root, names)))
        compile_shared(text + (library_extra if library == "libtenon.so" else ""), os.path.join(build, "lib", library))
    compile_shared(plugin_source, os.path.join(build, "lib/tenon/plugins-1/planted.so"))
    files = [name for name in common.tree_files(root) if name.endswith(".c") and name != left_out]
    with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as out:
        json.dump([{"file": os.path.join(root, name)} for name in files], out)


def compile_shared(text, path):
    subprocess.run([os.environ.get("CC", "cc"), "-x", "c", "-shared", "-fPIC", "-o", path, "-"], input=text, text=True,
                   check=True)


def build_fault(library_extra="", plugin_source="int tn_plugin_v1;\n", left_out=None):
    return lambda root: fake_build(root, library_extra, plugin_source, left_out)


def flip_byte(root, name):
    with open(os.path.join(root, name), "r+b") as data:
        data.seek(1000)
        byte = data.read(1)[0]
        data.seek(1000)
        data.write(bytes([byte ^ 1]))


def log_fault(text):
    """A log of CTest's in which a test was skipped."""
    def plant(root):
        fake_build(root, "", "int tn_plugin_v1;\n", None)
        write(root, "build-fake/Testing/Temporary/LastTest.log", "1/1 Testing: a.b\n1/1 Test: a.b\n" + text)
    return plant


NEED_BUILD = ["symbols.py", "dead.py", "skips.py"]
BUILD_FAULTS = [
    ("symbols.py", "a hidden function that got out", build_fault(library_extra="int tni_planted;\n"), "in no header: tni_planted"),
    ("symbols.py", "a function that is declared only", lambda root: (
        fake_build(root, "", "int tn_plugin_v1;\n", None),
        write(root, "sdk/include/tenon/planted.h", "TN_API int tn_planted(void);\n")), "not exported: tn_planted"),
    ("symbols.py", "a plugin with a second export", build_fault(plugin_source="int tn_plugin_v1, other;\n"),
     "in no header: other"),
    ("symbols.py", "a function of NVIDIA's in the core", build_fault(library_extra="int cuInit(int); int tni_planted(void) "
                                                                     "{ return cuInit(0); }\n"), "has cuInit of NVIDIA's"),
    ("symbols.py", "a plugin that names NVIDIA's driver",
     build_fault(plugin_source='const char *tn_plugin_v1 = "libcuda.so.1";\n'), "has libcuda.so of NVIDIA's"),
    ("symbols.py", "a plugin that calls the core",
     build_fault(plugin_source="int tn_open(void); int tn_plugin_v1; __attribute__((visibility(\"hidden\"))) int f(void);"
                               " int f(void) { return tn_open(); }\n"), "needs tn_open"),
    ("dead.py", "a file that nothing compiles", lambda root: (
        write(root, "core/base/planted.c", "int x;\n"), fake_build(root, "", "int tn_plugin_v1;\n", "core/base/planted.c")),
     "planted.c is not compiled"),
    ("dead.py", "a header that nothing includes", lambda root: (
        write(root, "core/base/planted.h", "int x;\n"), fake_build(root, "", "int tn_plugin_v1;\n", None)),
     "planted.h is not included"),
    ("skips.py", "a case that skips and says nothing", log_fault(
        "[ RUN      ] one\nskipped: no disk\n[  SKIPPED ] one\n[ RUN      ] two\n[  SKIPPED ] two\n"), "a.b two does not say"),
    ("skips.py", "a program that skips and says nothing", log_fault("Test Skipped.\n"), "a.b does not say"),
]


def run(gate, root):
    command = [sys.executable] if gate.endswith(".py") else ["sh"]
    command += [os.path.join(root, "tests/gates", gate), root]
    if gate in NEED_BUILD:
        command += ["--build", os.path.join(root, "build-fake")]
    if gate == "headers.py": # which takes a second for each header
        command += ["tenon/planted.h"]
    done = subprocess.run(command, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def copy(source, root, names):
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        shutil.copy2(os.path.join(source, name), os.path.join(root, name))


def stamp(path):
    """Size and time of a file; None if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


def undo(root, clean, names):
    """Makes the tree what it was before a fault was planted."""
    for folder, folders, found in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in found:
            path = os.path.join(folder, name)
            if os.path.relpath(path, root) not in names:
                os.remove(path)
    shutil.rmtree(os.path.join(root, "build-fake"), ignore_errors=True)
    copy(clean, root, [name for name in names if stamp(os.path.join(root, name)) != stamp(os.path.join(clean, name))])


def try_fault(row, trees, clean, names, before):
    """A finding if the gate does not see the fault, which is planted in one of `trees` and taken out again."""
    gate, fault, plant, expected = row
    root = trees.get()
    plant(root)
    status, said = run(gate, root)
    undo(root, clean, names)
    trees.put(root)
    new = "\n".join(line for line in said.splitlines() if line not in before[gate][1])
    return None if status and expected in new else "%s stays green with %s" % (gate, fault)


def main():
    root = common.root_of(sys.argv)
    names = set(common.tree_files(root))
    faults = FAULTS + BUILD_FAULTS
    gates = sorted({fault[0] for fault in faults})
    trees = queue.Queue()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        clean = os.path.join(folder, "clean")
        copy(root, clean, names)
        for i in range(os.cpu_count()):
            copy(clean, os.path.join(folder, "planted-%d" % i), names)
            trees.put(os.path.join(folder, "planted-%d" % i))
        fake_build(clean, "", "int tn_plugin_v1;\n", None)
        before = dict(zip(gates, pool.map(lambda gate: run(gate, clean), gates)))
        findings = ["%s is red without a fault: %s" % (gate, before[gate][1]) for gate in NEED_BUILD[:1] if before[gate][0]]
        found = pool.map(lambda row: try_fault(row, trees, clean, names, before), faults)
        findings += [finding for finding in found if finding]
    common.finish("selftest", findings, len(faults))


main()
