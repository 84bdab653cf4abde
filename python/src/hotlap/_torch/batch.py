"""How much a batch holds: samples, bytes, tokens, as far as its plain tensors and arrays show it. -1 is unknown."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # nothing is imported for it at run time
    from typing import Any, Optional, Tuple

ITEMS_MAX = 64
TOKEN_KEYS = ("input_ids", "tokens", "src_tokens", "decoder_input_ids")


def describe(batch: Any, tensor_type: Any, strided: object, batch_size: Optional[int],
             with_content: bool) -> Tuple[int, int, int]:
    """(samples, bytes, tokens)."""
    if with_content and type(batch) in (list, tuple) and 0 < len(batch) <= 4:  # the common case: (inputs, targets)
        size = 0
        for item in batch:
            if type(item) is not tensor_type or item.layout is not strided:
                break
            size += item.numel() * item.element_size()
        else:
            first = batch[0]
            return first.shape[0] if first.dim() else 1, size, -1
    samples = samples_of(batch, tensor_type, batch_size)
    return (samples, *content_of(batch, tensor_type, strided)) if with_content else (samples, -1, -1)


def mapping_of(item: object) -> Any:
    """A dict, or what a dict-like batch (Transformers' BatchEncoding) keeps its items in."""
    if isinstance(item, dict):
        return item
    data = getattr(item, "data", None)
    return data if type(data) is dict else None


def samples_of(batch: Any, tensor_type: Any, batch_size: Optional[int], depth: int = 0) -> int:
    if type(batch) is tensor_type:
        return batch.shape[0] if batch.dim() else 1
    if isinstance(batch, (list, tuple)):
        if not batch:
            return -1
        first = batch[0]
        if depth == 0 and isinstance(batch, list) and len(batch) == batch_size and type(first) is not tensor_type:
            return batch_size  # collate_fn left the samples as they are
        if isinstance(first, (list, tuple)) and not (depth and len(first) != batch_size):
            return len(first)
        return samples_of(first, tensor_type, batch_size, depth + 1) if depth < 3 else -1
    items = mapping_of(batch)
    if items:
        for value in items.values():
            found = samples_of(value, tensor_type, batch_size, depth + 1) if depth < 3 else -1
            if found >= 0:
                return found
        return -1
    if type(batch).__name__ == "ndarray":
        return batch.shape[0] if batch.ndim else 1
    return -1


def content_of(batch: Any, tensor_type: Any, strided: object) -> Tuple[int, int]:
    """(bytes, tokens). `strided`: torch.strided, the layout whose size is known."""
    size, tokens, seen, unknown = 0, -1, 0, False
    stack = [batch]
    while stack:
        item = stack.pop()
        seen += 1
        if seen > ITEMS_MAX:
            unknown = True
            break
        if type(item) is tensor_type:
            if item.layout is strided:
                size += item.numel() * item.element_size()
            else:
                unknown = True
        elif isinstance(item, (list, tuple)):
            if item and isinstance(item[0], (int, float, str)):
                continue
            stack.extend(item)
        elif type(item).__name__ == "ndarray":
            size += item.nbytes
        else:
            items = mapping_of(item)
            if items is None:
                unknown |= isinstance(item, tensor_type)
                continue
            for key in TOKEN_KEYS:
                found = items.get(key)
                if type(found) is tensor_type:
                    tokens = found.numel() + max(tokens, 0)
                    break
            stack.extend(items.values())
    return (-1 if unknown or not size else size), tokens
