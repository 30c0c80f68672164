"""The module tree as text, in the spelling that addresses each module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType

from torch import nn

from .instruments import RESERVED, ROOT_RESERVED


def _title(module: nn.Module) -> str:
    detail = module.extra_repr() if not module._modules else ""
    name = type(module).__name__
    return f"{name}({detail})" if detail and "\n" not in detail else name


def _same_shape(one: nn.Module, other: nn.Module) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def render_tree(root: nn.Module, label: str, also: Mapping[int, Sequence[str]] = MappingProxyType({})) -> str:
    """Every module on a line: its name (or the call that reaches it), its type; aliases name their first path.

    Runs of equal modules in a list are folded into one entry. `also` holds further names of modules, by id.
    """

    def titled(module: nn.Module) -> str:
        names = also.get(id(module))
        return _title(module) + (f" (also {', '.join(names)})" if names else "")

    seen: dict[int, str] = {id(root): label}
    lines = [f"{label}: {titled(root)}"]

    def spelled(name: str, parent: nn.Module) -> str:
        if isinstance(parent, (nn.ModuleList, nn.Sequential)) and name.isdigit():
            return f"[{name}]"
        taken = name in RESERVED or (parent is root and name in ROOT_RESERVED) or not name.isidentifier()
        return f'.child("{name}")' if taken else f".{name}"

    def visit(module: nn.Module, path: str, depth: int) -> None:
        children = list(module._modules.items())
        position = 0
        while position < len(children):
            name, child = children[position]
            position += 1
            if child is None:
                continue
            spelling = spelled(name, module)
            indent = "  " * depth
            if id(child) in seen:
                lines.append(f"{indent}{spelling}: {_title(child)} = {seen[id(child)]} (the same module)")
                continue
            last = name
            if isinstance(module, nn.ModuleList):
                while position < len(children):
                    following = children[position][1]
                    if following is None or id(following) in seen or not _same_shape(child, following):
                        break
                    last = children[position][0]
                    seen[id(following)] = f"{path}[{last}]"
                    position += 1
            seen[id(child)] = f"{path}{spelling}"
            if last == name:
                lines.append(f"{indent}{spelling}: {titled(child)}")
            else:
                lines.append(f"{indent}[{name}] ... [{last}]: {int(last) - int(name) + 1} x {_title(child)}")
            visit(child, f"{path}{spelling}", depth + 1)

    visit(root, label, 1)
    return "\n".join(lines)


def render_tree_html(text: str) -> str:
    """A tree that was rendered as text, as HTML."""
    style = "font-size:12.5px;line-height:1.5;background:transparent;color:inherit;margin:0"
    return f'<pre class="nnsl-tree" style="{style}">{escape(text)}</pre>'
