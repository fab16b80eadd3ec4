#!/usr/bin/env python3
"""What is public is described: headers, options, folders, the README's commands.

Every TN_API declaration of sdk/include/tenon/*.h has a comment in front of it with @since, and with @threads, unless
its header says for all of them. Declarations that follow each other without an empty line share the comment. Every
row of core/base/options.list stands in docs/options.md (tests/docs checks that table and that of the operators to the
letter). Every folder of FOLDERS has a README of at most 60 lines, and names only source files that there are. Links between
the tree's own pages lead somewhere, to a heading where they say so; docs/README.md has one to each page of docs. Decision
records have a number of their own, the four headings and at most 40 lines.
"""
import os
import re
import sys

import common

README_LINES, DECISION_LINES = 60, 40
DECISION_PARTS = ("Question", "Choice", "Cost", "What would change it")
FOLDERS = ("bench cli core core/api core/autograd core/base core/compile core/context core/device core/engine core/exec core/graph core/io "
           "core/op core/plugin core/tensor docs examples nn plugins plugins/common plugins/cpu plugins/image plugins/kv-rdma plugins/kv-shm plugins/kv-zmq plugins/mempool plugins/npz scripts sdk "
           "sdk/template/collective sdk/template/device sdk/template/device-async sdk/template/device-small sdk/template/kernel "
           "sdk/template/operator sdk/template/pool sdk/template/transport tests").split()


def comment_text(comment):
    return re.sub(r"\s+", " ", re.sub(r"\n\s*\*(?!/)", " ", comment))


def declarations(text):
    """(name, line, comment in front of it) of each TN_API declaration."""
    comment = ""
    token = re.compile(r"/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*|\bTN_API\b[^;{]*;|\n[ \t]*\n|[^\s]", re.S | re.M)
    for match in token.finditer(text):
        found = match.group(0)
        if found.startswith("/*"):
            comment = comment_text(found) if found.startswith("/**") else comment
        elif found.startswith("TN_API"):
            name = re.search(r"(\w+)\s*(?:\(|;|\[)", found[len("TN_API"):])
            yield name.group(1) if name else "?", text.count("\n", 0, match.start()) + 1, comment
        else:
            comment = ""


def header_findings(root, name):
    text = common.read(root, name)
    first = re.match(r"\s*/\*\*.*?\*/", text, re.S)
    for_all = "@threads" in first.group(0) if first else False
    findings, count = [], 0
    for function, line, comment in declarations(text):
        count += 1
        missing = [tag for tag in ("@since", "@threads") if tag not in comment and not (tag == "@threads" and for_all)]
        if not comment:
            findings.append("%s:%d: %s has no comment" % (name, line, function))
        elif missing:
            findings.append("%s:%d: the comment of %s lacks %s" % (name, line, function, " and ".join(missing)))
    return findings, count


def option_findings(root):
    keys = re.findall(r"^TN_OPTION\(\s*\"([^\"]+)\"", common.read(root, "core/base/options.list"), re.M)
    path = "docs/options.md"
    page = common.read(root, path) if os.path.exists(os.path.join(root, path)) else ""
    return ["%s: option %s is missing; scripts/tools/manual writes it" % (path, key) for key in keys
            if "| `%s` |" % key not in page], len(keys)


def anchors_of(root, path):
    """What links may put behind #: headings in lower case, without marks, words joined by hyphens."""
    text = re.sub(r"^```.*?^```", "", common.read(root, path), flags=re.S | re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def link_findings(root, name, text):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?[^)]*\)", text):
        path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
        if "://" in target:
            continue
        if not os.path.exists(os.path.join(root, path)):
            yield "%s: the link to %s leads nowhere" % (name, target)
        elif anchor and path.endswith(".md") and anchor not in anchors_of(root, path):
            yield "%s: %s has no heading #%s" % (name, path, anchor)


def readme_findings(name, text, files):
    lines = text.count("\n")
    if lines > README_LINES and name not in ("README.md", "docs/decisions/README.md"):  # an index has a line for each record
        yield "%s: %d lines, at most %d" % (name, lines, README_LINES)
    there = {file.rpartition("/")[2] for file in files}
    for source in sorted(set(re.findall(r"`([\w./-]+\.(?:c|h|inc|list|py))`", text))):
        if os.path.basename(source) not in there:
            yield "%s: there is no file %s" % (name, source)
    if name in ("docs/README.md", "docs/decisions/README.md"):
        folder = os.path.dirname(name) + "/"
        for page in files:
            if re.match(re.escape(folder) + r"[^/]+\.md$", page) and page != name \
                    and "](%s)" % page[len(folder):] not in text:
                yield "%s: does not name %s" % (name, page)


def page_findings(root, name, files):
    text = common.read(root, name)
    lines = text.count("\n")
    yield from link_findings(root, name, text)
    if os.path.basename(name) == "README.md":
        yield from readme_findings(name, text, files)
    if re.match(r"docs/decisions/\d", name):
        if lines > DECISION_LINES:
            yield "%s: %d lines, at most %d" % (name, lines, DECISION_LINES)
        for part in DECISION_PARTS:
            if "\n## %s\n" % part not in text:
                yield "%s: no part \"%s\"" % (name, part)


def main():
    root = common.root_of(sys.argv)
    files = common.tree_files(root)
    findings, checked = option_findings(root)
    for name in files:
        if re.match(r"sdk/include/tenon/[^/]+\.h$", name):
            found, count = header_findings(root, name)
            findings += found
            checked += count
        elif name.endswith(".md"):
            findings += page_findings(root, name, files)
            checked += 1
    findings += ["%s has no README.md" % folder for folder in FOLDERS
                 if os.path.isdir(os.path.join(root, folder)) and folder + "/README.md" not in files]
    numbers = [os.path.basename(name)[:4] for name in files if re.match(r"docs/decisions/\d", name)]
    findings += ["docs/decisions: number %s is taken twice" % n for n in sorted(set(numbers)) if numbers.count(n) > 1]
    common.finish("docs", findings, checked)


if __name__ == "__main__":
    main()
