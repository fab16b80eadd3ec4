#!/usr/bin/env python3
"""Runs every fenced block of pages against an installed Tenon, so that what they show is true.

usage: blocks.py --install PREFIX PAGE.md...

The blocks of a page run in their order in one empty folder. The words behind ``` say what a block is:

    ```c NAME, ```make NAME, ... any language   is written to the file NAME (with its folders)
    ```sh                       runs with bash -e; folder, umask and exported variables live on in the next block;
                                "```sh exit=3": it must end with this code
    ```console                  "$ command" lines run as above, one by one; lines below each are what it must print
    ```text                     what the block in front must have printed (stdout and stderr)
    ```c                        a program, if it has a main: built with tenon-nn's flags and run; else code that must
                                compile with tenon-plugin's flags
    ```ini                      a configuration: must be read without an error by the tool
    ```json                     must be JSON
    ```diff                     is applied with `patch -p0` to the files it names: every line must fit
    ```cmake, ```make, ...      without a name: an error, as is any other language: nothing would look at it

In expected text a line "..." stands for any lines, and "..." in a line for any characters. A block that cannot run here
(its page says ```sh needs=COMMAND) is skipped and named. Exit code: 0 if every block of every page was true.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^(`{3,})[ \t]*([^\n`]*)\n(.*?)^\1[ \t]*$", re.S | re.M)
LIMIT_S = 1800  # against hanging


class Wrong(Exception):
    pass


def parse(text):
    """(line, language, words, body) of each fenced block in order."""
    for match in FENCE.finditer(text):
        words = match.group(2).split()
        yield text.count("\n", 0, match.start()) + 1, words[0] if words else "", words[1:], match.group(3)


def pattern_of(expected):
    parts = []
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() in ("...", "…"):
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(p) for p in re.split(r"\.\.\.|…", line.rstrip())) + r"[ \t]*\n")
    return re.compile("".join(parts) + r"\Z")


def compare(expected, printed):
    text = printed if printed.endswith("\n") or not printed else printed + "\n"
    if not pattern_of(expected).match(text):
        raise Wrong("printed:\n%s----\nbut the page says:\n%s" % (text, expected))


class Page:
    def __init__(self, path, prefix):
        self.path, self.prefix = path, prefix
        self.folder = tempfile.mkdtemp(prefix="tenon-blocks-")
        self.state = os.path.join(self.folder, ".state")
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work, 0o755)  # whatever the umask: plugins lie in it
        self.printed = None  # of the block in front, if it ran
        self.skipped, self.skipping = [], False

    def environment(self):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "MXNET_", "OPENBLAS_", "LD_", "CMAKE_"))}
        libdirs = [root for root, _, files in os.walk(self.prefix) if "libtenon.so" in files]
        libdir = libdirs[0] if libdirs else os.path.join(self.prefix, "lib")
        keep.update(PATH=os.path.join(self.prefix, "bin") + os.pathsep + os.environ["PATH"], LC_ALL="C.UTF-8",
                    PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), CMAKE_PREFIX_PATH=self.prefix, HOME=self.work,
                    XDG_CONFIG_HOME=os.path.join(self.folder, "no-config"), TERM="dumb", LD_LIBRARY_PATH=libdir,
                    PREFIX=self.prefix)
        return keep

    def shell(self, script, wanted=0):
        """Runs a script where the last one ended; what it printed."""
        keep = self.state + ".sh"
        head = "[ ! -f '%s' ] || . '%s'\n" % (keep, keep)
        body = "trap '_status=$?; { declare -px; umask -p; printf \"cd %%q\\\\n\" \"$PWD\"; } >\"%s\"; exit $_status' EXIT\n" % keep
        done = subprocess.run(["bash", "-c", head + body + "set -e\n" + script], cwd=self.work, env=self.environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                              timeout=LIMIT_S, errors="replace")
        if done.returncode != wanted:
            raise Wrong("ended with %d, not %d, and printed:\n%s" % (done.returncode, wanted, done.stdout))
        return done.stdout

    def where(self):
        """The folder in which the next block runs."""
        return self.shell("pwd").rstrip("\n")

    # ---- kinds of blocks

    def block_sh(self, words, body):
        wanted = 0
        for word in words:
            key, _, value = word.partition("=")
            if key == "exit":
                wanted = int(value)
        self.printed = self.shell(body, wanted)

    def block_console(self, _, body):
        steps = re.split(r"^\$ ", body, flags=re.M)
        if steps[0].strip() or len(steps) < 2:
            raise Wrong("a console block begins with \"$ command\"")
        for step in steps[1:]:
            command, _, expected = step.partition("\n")
            printed = self.shell("set +e\n" + command + "\ntrue")
            if expected.strip():
                compare(expected, printed)
        self.printed = None

    def block_c(self, _, body):
        source = os.path.join(self.folder, "block.c")
        with open(source, "w", encoding="utf-8") as out:
            out.write(body)
        warn = "-std=c11 -Wall -Wextra -Werror"
        if re.search(r"\bmain\(", body):
            self.printed = self.shell("cc %s '%s' -o '%s/program' $(pkg-config --cflags --libs tenon-nn) -lm\n'%s/program'"
                                      % (warn, source, self.folder, self.folder))
        else:
            self.shell("cc %s -Wno-unused -c '%s' -o /dev/null $(pkg-config --cflags tenon-plugin)" % (warn, source))
            self.printed = None

    def block_ini(self, _, body):
        path = os.path.join(self.folder, "block.ini")
        with open(path, "w", encoding="utf-8") as out:
            out.write(body)
        self.shell("tenon plugins list --config '%s'" % path)
        self.printed = None

    def block_json(self, _, body):
        try:
            json.loads(body)
        except ValueError as error:
            raise Wrong("is not JSON: %s" % error) from None
        self.printed = None

    def block_diff(self, _, body):
        change = os.path.join(self.folder, "block.diff")
        with open(change, "w", encoding="utf-8") as out:
            out.write(body)
        self.shell("patch -p0 --fuzz=0 --no-backup-if-mismatch <'%s'" % change)
        self.printed = None

    def block_text(self, _, body):
        if self.printed is None:
            raise Wrong("a text block says what the block in front prints, but that one prints nothing")
        compare(body, self.printed)
        self.printed = None

    def file(self, name, body):
        path = os.path.join(self.where(), name)
        self.shell("mkdir -p '%s'" % os.path.dirname(path)) # by the page's umask
        with open(path, "w", encoding="utf-8") as out:
            out.write(body)
        self.printed = None

    def run(self, line, language, words, body):
        needs = [w.partition("=")[2] for w in words if w.startswith("needs=")]
        words = [w for w in words if not w.startswith("needs=")]
        if language == "text" and self.skipping:  # what a skipped block would have printed
            return
        self.skipping = any(not shutil.which(need, path=self.environment()["PATH"]) for need in needs)
        if self.skipping:
            self.skipped.append("%s:%d needs %s" % (self.path, line, ", ".join(needs)))
            self.printed = None
            return
        names = [w for w in words if "=" not in w]
        kind = getattr(self, "block_" + language, None)
        try:
            if names and language != "sh":
                self.file(names[0], body)
            elif kind:
                kind(words, body)
            else:
                raise Wrong("nothing looks at a block of language \"%s\" without a file name" % language)
        except Wrong as error:
            raise Wrong("%s:%d: %s" % (self.path, line, error)) from None
        except subprocess.TimeoutExpired:
            raise Wrong("%s:%d: ran for more than %d s" % (self.path, line, LIMIT_S)) from None

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    args = sys.argv[1:]
    if len(args) < 3 or args[0] != "--install":
        sys.exit(__doc__.strip())
    prefix, pages = os.path.abspath(args[1]), args[2:]
    count, failed, skipped = 0, 0, []
    for path in pages:
        page = Page(path, prefix)
        with open(path, encoding="utf-8") as source:
            blocks = list(parse(source.read()))
        try:
            for block in blocks:
                page.run(*block)
                count += 1
        except Wrong as error:
            print(error)
            failed += 1  # what follows needs this block
        skipped += page.skipped
        page.close()
    for line in skipped:
        print("skipped: " + line)
    print("blocks: %s, %d blocks of %d pages" % ("red" if failed else "green", count, len(pages)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
