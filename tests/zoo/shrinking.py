"""Make a configuration tiny without knowing its model.

A default configuration is created, its size fields are lowered by the first rule whose pattern matches the field's
name, and the configuration is created again from the lowered fields alone, so that everything the class derives from
them (layer patterns, head sizes) is derived anew. Sub-configurations are shrunk first, in the same way, with one size
table, which keeps the widths that must agree equal. Special token ids move inside the lowered vocabulary.
"""

import re
from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedConfig

from .overrides import CONFIG_FIELDS
from .rules import HEAD_SIZE, LAYER_COUNT_FIELDS, LIST_SIZES, SIZE_RULES, SIZES_OF_UNSET_FIELDS, VOCABULARY

Fields = Mapping[str, Any]

_TOKEN_ID = re.compile(r"(_token_id|_token_index|_token_ids|_pad_id|_bos_id|_eos_id|_start_id|_end_id|_newline_id)$")
_SIZE_RULES = tuple((re.compile(pattern), size) for pattern, size in SIZE_RULES)


def shrink(
    config_class: type[PreTrainedConfig], overrides: Fields | None = None, init: Fields | None = None
) -> PreTrainedConfig:
    """A tiny configuration of `config_class`.

    `overrides` are fields of this configuration that the rules get wrong for one architecture, on top of those that
    `CONFIG_FIELDS` names for the class; `init` are the fields that a parent configuration starts this one with.
    """
    given = {**CONFIG_FIELDS.get(config_class.__name__, {}), **(overrides or {})}
    shrunk = _shrunk_fields(config_class(**(init or {})))
    if init and ("out_indices" in init or "out_features" in init):
        # The parent reads layers by number, so they must all be there.
        shrunk = {name: value for name, value in shrunk.items() if name not in LAYER_COUNT_FIELDS}
    return config_class(**{**(init or {}), **shrunk, **given})


def _shrunk_fields(config: PreTrainedConfig) -> dict[str, Any]:
    values = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    fields: dict[str, Any] = {}
    taken: set[int] = set()
    for name, value in values.items():
        if isinstance(value, PreTrainedConfig):
            spec = type(config).sub_configs_defaults.get(name)
            fields[name] = shrink(type(value), init=spec.init_kwargs if spec is not None else None)
        elif _TOKEN_ID.search(name):
            fields[name] = _inside_vocabulary(value, taken)
        elif value is None or (isinstance(value, int) and not isinstance(value, bool)):
            fields[name] = _size_of(name, value)
        elif isinstance(value, (list, tuple)) and name in LIST_SIZES:
            fields[name] = type(value)(LIST_SIZES[name][: len(value)])
    if _without_grouped_queries(values):
        fields["num_key_value_heads"] = fields["num_attention_heads"]
    if "depths" in values:
        # Staged models derive these two from their stages.
        fields = {name: value for name, value in fields.items() if name not in ("num_layers", "hidden_size")}
    else:
        fields.update(_one_layer_of_each_kind(values))
    rope = values.get("rope_parameters")
    if isinstance(rope, dict) and "mrope_section" in rope:
        fields["rope_parameters"] = {**rope, "mrope_section": _sections(rope)}
    # A field left as it was is not passed on: the class may derive it from the lowered ones.
    return {
        name: value for name, value in fields.items() if isinstance(value, PreTrainedConfig) or value != values[name]
    }


def _sections(rope: Mapping[str, Any]) -> list[int]:
    """Time, height and width parts of the rotated half of a head."""
    rotated = int(HEAD_SIZE * rope.get("partial_rotary_factor", 1.0)) // 2
    return [rotated - 2 * (rotated // 3), rotated // 3, rotated // 3]


def _without_grouped_queries(values: Mapping[str, Any]) -> bool:
    heads, kv_heads = values.get("num_attention_heads"), values.get("num_key_value_heads")
    return isinstance(heads, int) and (heads == kv_heads or values.get("qk_nope_head_dim") is not None)


def _one_layer_of_each_kind(values: Mapping[str, Any]) -> dict[str, Any]:
    """The layer count and every list with one entry per layer, cut to the first layer of each kind (two at least)."""
    for count_field in LAYER_COUNT_FIELDS:
        count = values.get(count_field)
        if not isinstance(count, int) or isinstance(count, bool) or count < 2:
            continue
        per_layer = {
            name: value for name, value in values.items() if isinstance(value, (list, tuple)) and len(value) == count
        }
        if not per_layer:
            continue
        kinds = [value for value in per_layer.values() if isinstance(value[0], str)]
        first: dict[tuple[str, ...], int] = {}
        for layer in range(count):
            first.setdefault(tuple(value[layer] for value in kinds), layer)
        kept = list(first.values()) if len(first) > 1 else [0, 1]
        cut = {name: type(value)(_size_of(name, value[layer]) for layer in kept) for name, value in per_layer.items()}
        return {count_field: len(kept), **cut}
    return {}


def _size_of(name: str, value: Any) -> Any:
    if value is None:
        return SIZES_OF_UNSET_FIELDS.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    for pattern, size in _SIZE_RULES:
        if pattern.fullmatch(name):
            return min(value, size)
    return value


def _inside_vocabulary(value: Any, taken: set[int]) -> Any:
    """`value` (an id, a list of ids or None) with every id that is too large moved to a free id at the vocabulary's end."""
    if isinstance(value, (list, tuple)):
        return [_inside_vocabulary(item, taken) for item in value]
    if not isinstance(value, int) or value < VOCABULARY // 2:
        return value
    free = next(i for i in range(VOCABULARY - 1, 0, -1) if i not in taken)
    taken.add(free)
    return free
