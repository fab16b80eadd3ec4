#!/usr/bin/env python3
"""The layout of all that crosses the plugin border is what sdk/abi/1.layout says.

usage: abi.py [ROOT] [--update]

Reads the structs and constants of sdk/include/tenon/plugin/**/*.h (the indices of attributes and the numbers of choices
among them), lets the compiler print offsets and sizes, and
compares: nothing listed may move, change its type or vanish. A member at the end of a struct that starts with its
struct_size, a new struct, a new constant: --update adds them with the ABI minor of today as `since`. Everything
else needs a new draft number (TN_ABI_DRAFT) while ABI 1 is a draft, and cannot be once it is frozen.
A header whose first comment begins with "Sketch:" is of a kind that hosts refuse: no plugin has it, and it is not listed.
Also: R1, only fixed-width types and pointers cross the border; no bit-fields.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import common

LAYOUT = "sdk/abi/1.layout"
NOT_LISTED = {"TN_ABI_MINOR", "TN_ABI_MIN", "TN_ABI_TARGET", "TN_ABI_DRAFT", "TN_MAGIC", "TN_ABI_TAG", "TN_PLUGIN_EXPORT"}
SKETCH = re.compile(r"/\*\*\n \* Sketch: ")
FORBIDDEN = re.compile(r"\b(?:enum|union|bool|_Bool|long|short|int|unsigned|signed|size_t|ssize_t|float|FILE|va_list|wchar_t)\b")


def split_top(text, at):
    """Splits at `at` outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == at and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return parts + [text[start:]]


def squeeze(text):
    text = re.sub(r"\s+", " ", text).strip()
    return re.sub(r"\* (?=[*\w)])", "*", text)


def without_name(parameter):
    parameter = squeeze(parameter)
    match = re.match(r"^(.*[\s*])([A-Za-z_]\w*)$", parameter)
    if match and match.group(1).strip() not in ("", "const", "struct", "const struct"):
        return match.group(1).strip()
    return parameter


def members_of(body):
    """(name, type) of each member; several declarators of one declaration are told apart."""
    for declaration in body.split(";"):
        declaration = squeeze(declaration)
        if not declaration:
            continue
        function = re.match(r"^(.*?)\(\*(\w+)\)\((.*)\)$", declaration)
        if function and not re.search(r",\s*\(\*", declaration):
            parameters = ", ".join(without_name(p) for p in split_top(function.group(3), ","))
            yield function.group(2), "%s (*)(%s)" % (function.group(1).strip(), parameters)
            continue
        first, *others = split_top(declaration, ",")
        base = re.match(r"^((?:const\s+)?(?:struct\s+)?\w+)\b", first).group(1)
        for declarator in [first[len(base):]] + others:
            name = re.search(r"(\w+)\s*((?:\[[^]]*\]\s*)*)$|\(\*(\w+)\)", declarator.strip())
            label = name.group(1) or name.group(3)
            yield label, squeeze(base + " " + declarator.replace(label, "", 1))


def header_paths(root):
    return sorted(glob.glob(os.path.join(root, "sdk/include/tenon/plugin/**/*.h"), recursive=True))


def value_of(constants, name):
    """The text that `name` stands for, through names that are other names' values."""
    for _ in constants:
        if constants[name] not in constants:
            break
        name = constants[name]
    return constants[name]


def includes_of(root):
    return "".join("#include \"%s\"\n" % os.path.relpath(p, os.path.join(root, "sdk/include")) for p in header_paths(root))


def enumerators(root):
    """{name: number}: indices of attributes and numbers of choices, as the compiler expands the lists."""
    text = subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-E", "-P", "-I" + os.path.join(root, "sdk/include"), "-"],
                          input=includes_of(root), check=True, capture_output=True, text=True).stdout
    numbers = {}
    for body in re.findall(r"\benum\s*\w*\s*\{([^}]*)\}", text):
        for i, name in enumerate(body.split(",")):
            match = re.fullmatch(r"(TN_\w+)(?: = (\w+))?", squeeze(name))
            if match:
                numbers[match.group(1)] = match.group(2) or "%d" % i
    return numbers


def read_headers(root):
    """Structs in order {name: [(member, type)]}, constants {name: text}, ABI minor, draft number, what sketches name."""
    structs, constants, sketched = {}, {}, set()
    for path in header_paths(root):
        text = common.read("", path)
        known = {*structs, *constants} if SKETCH.match(text) else None
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S).replace("\\\n", " ")
        for name, value in re.findall(r"^#define[ \t]+(TN_\w+)[ \t]+(\S.*)$", text, re.M):
            constants[name] = squeeze(value)
        text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
        for match in re.finditer(r"(?:typedef\s+)?struct\s*(\w*)\s*\{", text):
            depth, end = 1, match.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            name = match.group(1) or re.match(r"\s*(\w+)", text[end:]).group(1)
            structs[name] = list(members_of(text[match.end():end - 1]))
        if known is not None:
            sketched |= {*structs, *constants} - known
    number = {key: int(re.match(r"\d+", constants[key]).group()) for key in ("TN_ABI_MAJOR", "TN_ABI_MINOR")}
    draft = re.match(r"\d+", constants.get("TN_ABI_DRAFT", "0")).group()
    kept = {name: value for name, value in ((name, value_of(constants, name)) for name in constants)
            if name not in NOT_LISTED and not name.endswith(("_H", "_KNOWN")) and re.match(r'[-(\d"]|INT64', value)}
    kept.update(enumerators(root))
    return structs, kept, number["TN_ABI_MINOR"], int(draft), sketched


def measure(root, structs):
    """{(struct, member): (offset, size)} as the compiler has it; member "" is the struct itself."""
    lines = ["#include <stdio.h>", includes_of(root), "int main(void) {"]
    for struct, members in structs.items():
        lines.append('printf("%s  0 %%zu\\n", sizeof(%s));' % (struct, struct))
        for member, kind in members:
            size = "0" if kind.endswith("[]") else "sizeof(((%s *)0)->%s)" % (struct, member)
            lines.append('printf("%s %s %%zu %%zu\\n", offsetof(%s, %s), (size_t)%s);'
                         % (struct, member, struct, member, size))
    lines += ["return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="ascii") as out:
            out.write("\n".join(lines) + "\n")
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-I" + os.path.join(root, "sdk/include"), source, "-o",
                        program], check=True)
        text = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    rows = [line.split(" ") for line in text.splitlines()]
    return {(row[0], row[1]): (int(row[2]), int(row[3])) for row in rows}


def check_types(structs):
    for struct, members in structs.items():
        for member, kind in members:
            word = FORBIDDEN.search(kind)
            if word:
                yield "%s.%s: \"%s\" may not cross the border (R1): %s" % (struct, member, word.group(), kind)
            if ":" in kind:
                yield "%s.%s: a bit-field may not cross the border (R1)" % (struct, member)


def lines_of(structs, constants, places):
    """{key: line without since}, in the order they are written."""
    lines = {}
    for struct, members in structs.items():
        lines["%s" % struct] = "%d" % places[(struct, "")][1]
        for member, kind in members:
            lines["%s.%s" % (struct, member)] = "%d %d %s" % (*places[(struct, member)], kind)
    for name, value in constants.items():
        lines["#" + name] = value
    return lines


def read_layout(root):
    """(draft number, {key: (since, line)})"""
    draft, rows = -1, {}
    for line in common.read(root, LAYOUT).splitlines():
        head = re.match(r"^# draft (\d+)$", line)
        if head:
            draft = int(head.group(1))
        elif line and not line.startswith("# "):
            key, since, rest = line.split(" ", 2)
            rows[key] = (int(since), rest)
    return draft, rows


def growable(structs, name):
    first = structs.get(name, [("", "")])[0]
    return first[0] == "struct_size" or first[1] in ("tn_capability", "tn_service")


def compare(structs, lines, rows):
    """(broken, added): what is not allowed, and what --update may add."""
    broken, added = [], []
    for key, (_, was) in rows.items():
        now = lines.get(key)
        if now == was or (now is not None and "." not in key and not key.startswith("#") and growable(structs, key)
                          and int(now) > int(was)):
            continue
        broken.append("%s: was %s, is %s" % (key, was, now if now is not None else "gone"))
    for key in lines:
        if key in rows:
            continue
        struct = key.split(".")[0]
        if "." in key and struct in rows and not growable(structs, struct):
            broken.append("%s: new, but %s has no struct_size and may not grow" % (key, struct))
        elif "." in key and struct in rows and key in known_part(structs[struct], struct, rows):
            broken.append("%s: new, but not at the end of %s" % (key, struct))
        else:
            added.append("%s: new: run tests/gates/abi.py --update and commit %s" % (key, LAYOUT))
    return broken, added


def known_part(members, struct, rows):
    """Members up to the last one that the layout knows: nothing new may be among them."""
    names = ["%s.%s" % (struct, member) for member, _ in members]
    known = [i for i, name in enumerate(names) if name in rows]
    return names[:known[-1] + 1] if known else []


def write_layout(root, lines, rows, minor, draft):
    with open(os.path.join(root, LAYOUT), "w", encoding="utf-8") as out:
        out.write("# Layout of ABI 1, made by tests/gates/abi.py --update and compared by it.\n"
                  "# struct since size | struct.member since offset size type | #CONSTANT since value\n"
                  "# draft %d\n" % draft)
        for key, line in lines.items():
            out.write("%s %d %s\n" % (key, rows[key][0] if key in rows else minor, line))


def main():
    root = common.root_of(sys.argv)
    structs, constants, minor, draft, sketched = read_headers(root)
    lines = {key: line for key, line in lines_of(structs, constants, measure(root, structs)).items()
             if key.lstrip("#").split(".")[0] not in sketched}
    fresh = not os.path.isfile(os.path.join(root, LAYOUT))
    was_draft, rows = (draft, {}) if fresh else read_layout(root)
    broken, added = compare(structs, lines, rows)
    if "--update" in sys.argv and (not broken or draft > was_draft):
        write_layout(root, lines, rows if draft == was_draft else {}, minor, draft)
        broken, added = [], []
    elif broken:
        broken.append("members may only be appended; while ABI 1 is a draft: raise TN_ABI_DRAFT, then abi.py --update")
    common.finish("abi", list(check_types(structs)) + broken + added, len(lines))


main()
