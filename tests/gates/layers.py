#!/usr/bin/env python3
"""Includes follow the design: core/LAYERS between rooms, the public headers elsewhere.

sdk/check: the public headers, its own folder, and of the core what LAYERS names for it.
core: a room includes its own headers and those of the rooms LAYERS lists for it; from another room only what that
room's interface, core/<room>/<room>.h, is or includes (and .list tables). nn, cli, examples: tenon/*.h and their own; nn also plugins/common.
Plugins and templates: tenon/plugin/*.h and their own folder, plugins also plugins/common; test programs of templates: tenon/*.h (those of transport and collective also their plugin header). Public headers: public headers.
"""
import os
import posixpath
import re
import sys

import common

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)


def includes(root, name):
    """(line, quote, target) of each include; comments do not count."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), common.read(root, name), flags=re.S)
    return [(text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)) for m in INCLUDE.finditer(text)]


def read_layers(root):
    layers = {}
    for line in common.read(root, "core/LAYERS").splitlines():
        if line.strip() and not line.startswith("#"):
            room, _, below = line.partition(":")
            layers[room.strip()] = set(below.split())
    return layers


def check_core(root, name, target, layers, doors):
    room = name.split("/")[1]
    if name.count("/") < 2:
        return "lies outside every room"
    if room not in layers:
        return "room %s is not in core/LAYERS" % room
    if target.startswith("tenon/"):
        return None if os.path.isfile(os.path.join(root, "sdk/include", target)) else "includes %s, which is not there" % target
    if "/" not in target:
        return None if os.path.isfile(os.path.join(root, "core", room, target)) else "includes \"%s\": write \"room/file.h\"" % target
    other = target.split("/")[0]
    if other == room:
        return None
    if other not in layers[room]:
        return "room %s may not include %s (core/LAYERS)" % (room, target)
    if target.endswith(".list") or target in doors.get(other, ()):
        return None
    return "includes %s past the door %s/%s.h" % (target, other, other)


def doors_of(root, layers):
    doors = {}
    for room in (room for room in layers if "/" not in room):
        door = "%s/%s.h" % (room, room)
        doors[room] = {door}
        if os.path.isfile(os.path.join(root, "core", door)):
            doors[room] |= {t for _, _, t in includes(root, "core/" + door) if t.startswith(room + "/")}
    return doors


def check_outside(name, quote, target, root, home, allowed, shared=None):
    """`home`: the folder whose headers the file may use, with `shared`; `allowed`: prefix of the public headers."""
    if target.startswith("tenon/"):
        if not os.path.isfile(os.path.join(root, "sdk/include", target)):
            return "includes %s, which is not there" % target
        if allowed and not re.match(allowed, target):
            return "may not include %s" % target
        return None
    if quote == "<":
        return None
    near = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    for path in (near, posixpath.normpath(posixpath.join(home, target))):
        if path.startswith((home + "/", (shared or home) + "/")) and os.path.isfile(os.path.join(root, path)):
            return None
    return "includes \"%s\", which lies outside %s" % (target, home)


def check(root, name, quote, target, layers, doors):
    parts = name.split("/")
    if parts[0] == "core":
        return check_core(root, name, target, layers, doors) if quote == '"' or target.startswith("tenon/") else None
    if parts[0] == "cli" and target in ("check.h", "tests.list", "rules.list"): # the door of sdk/check, and what it asks
        return None
    if parts[0] in ("nn", "cli", "examples"):
        inner = "" if parts[0] == "nn" else "(plugin/)?" # a program may bring a plugin of its own
        shared = "plugins/common" if parts[0] == "nn" else None
        return check_outside(name, quote, target, root, parts[0], r"tenon/%s[^/]+\.h$" % inner, shared)
    if parts[0] == "plugins":
        return check_outside(name, quote, target, root, "/".join(parts[:2]), r"tenon/plugin/", "plugins/common")
    if parts[:2] == ["sdk", "template"]:
        test = parts[-1].startswith("test_") # a program; some are hosts, of what programs do not reach
        host = parts[2] if parts[2] in ("transport", "collective") else None
        allowed = (r"tenon/(plugin/%s|[^/]+)\.h$" % host if host else r"tenon/[^/]+\.h$") if test else r"tenon/plugin/"
        return check_outside(name, quote, target, root, "/".join(parts[:3]), allowed)
    if parts[:2] == ["sdk", "check"]:
        if target in layers["sdk/check"]:
            return None
        return check_outside(name, quote, target, root, "sdk/check", r"tenon/(plugin/)?[^/]+\.h$")
    if parts[:3] == ["sdk", "include", "tenon"]:
        home = "sdk/include/tenon/plugin" if parts[3] == "plugin" else "sdk/include/tenon"
        return check_outside(name, quote, target, root, home, None)
    return None


def main():
    root = common.root_of(sys.argv)
    layers = read_layers(root)
    doors = doors_of(root, layers)
    findings, checked = [], 0
    for name in common.tree_files(root):
        if not name.endswith(common.CODE):
            continue
        for line, quote, target in includes(root, name):
            checked += 1
            finding = check(root, name, quote, target, layers, doors)
            if finding:
                findings.append("%s:%d: %s" % (name, line, finding))
    common.finish("layers", findings, checked)


main()
