"""Attention as one kernel, by PyTorch's rules for CUDA.

A build for the CPU would take scaled_dot_product_attention apart. Its backend on a GPU follows from
dtypes, shapes, the mask and the switches of torch.backends.cuda, in PyTorch's order of priority.
"""
import torch
import torch._dynamo
import torch.nn.functional as functional

aten = torch.ops.aten


# pytorch/pytorch pull request 162073: cuDNN's attention comes first on compute capability 9.0 and 10.0.
CUDNN_FIRST = torch.torch_version.TorchVersion(torch.__version__) >= (2, 9)


@torch._dynamo.assume_constant_result
def switches():
    """Whether cuDNN's, flash, memory-efficient and plain attention may run."""
    backends = torch.backends.cuda
    return (backends.cudnn_sdp_enabled(), backends.flash_sdp_enabled(), backends.mem_efficient_sdp_enabled(),
            backends.math_sdp_enabled())


def chosen_backend(query, key, value, mask, grouped, capability):
    half = query.dtype in (torch.float16, torch.bfloat16)
    head, (cudnn, flash, efficient, plain) = query.shape[-1], switches()
    even = query.shape[-1] == value.shape[-1]
    broadcasts = query.shape[-3] != key.shape[-3] and not grouped
    if broadcasts:
        return "math"
    suits_cudnn = cudnn and half and even and head <= 128 and head % 8 == 0
    if suits_cudnn and CUDNN_FIRST and mask is None and capability in ((9, 0), (10, 0)):
        return "cudnn"
    if flash and half and mask is None and head <= 256 and even and capability >= (8, 0):
        return "flash"
    groups = grouped and query.shape[-3] != key.shape[-3]
    if efficient and not groups and query.dtype != torch.float64:
        return "efficient"
    if suits_cudnn and not plain and capability >= (8, 0):
        return "cudnn"
    return "math"


def attend(capability, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
           enable_gqa=False):
    if query.device.type == "cuda" and torch.is_autocast_enabled("cuda"):
        narrow = torch.get_autocast_dtype("cuda")
        query, key, value = (one.to(narrow) if one.is_floating_point() else one for one in (query, key, value))
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.to(narrow)
    backend = chosen_backend(query, key, value, attn_mask, enable_gqa, capability)
    if backend == "math" or query.device.type != "cuda":
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            zero = torch.zeros((), dtype=query.dtype, device=query.device)
            attn_mask = torch.where(attn_mask, zero, float("-inf"))
        attn_mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
    if backend == "flash":
        head = query.shape[-1]
        if head % 8:
            pad = 8 - head % 8
            scale = scale or head**-0.5
            query, key, value = (functional.pad(one, (0, pad)) for one in (query, key, value))
        out = aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
        return out[..., :head]
    needs_gradient = any(one.requires_grad for one in (query, key, value))
    if backend == "efficient":
        return aten._scaled_dot_product_efficient_attention(
            query, key, value, attn_mask, needs_gradient, dropout_p, is_causal, scale=scale)[0]
    return aten._scaled_dot_product_cudnn_attention(
        query, key, value, attn_mask, needs_gradient, dropout_p, is_causal, False, scale=scale)[0]


def replace_attention(capability):
    def scaled_dot_product_attention(*args, **kwargs):
        return attend(capability, *args, **kwargs)

    functional.scaled_dot_product_attention = scaled_dot_product_attention
