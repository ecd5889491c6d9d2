"""The networks of `networks`: what is exported, at which sizes, in which forms. Weights are random, from a seed."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .detectors import DETECTORS, RTDETR, YOLO, detector, rtdetr, yolo
from .exporting import NEAR, Made, distance, exported, put, runs_of, settled, taken, unlike
from .torchvision_ops import import_torchvision

__all__ = ["KEPT", "NAMES", "Made", "make", "prepare"]

KEPT = "FASTLAYERS_ZOO_KEPT"  # in the environment: where networks are kept that are needed in several forms


def _names(text: str) -> list[str]:
    return text.split()


TORCHVISION = _names(
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 "
    "mobilenet_v2 mobilenet_v3_small mobilenet_v3_large regnet_x_400mf regnet_y_400mf resnet18 resnet50 "
    "resnext50_32x4d shufflenet_v2_x0_5 squeezenet1_0 squeezenet1_1 swin_t swin_v2_t vgg11_bn vit_b_32 "
    "wide_resnet50_2 segmentation.deeplabv3_mobilenet_v3_large segmentation.fcn_resnet50 "
    "segmentation.lraspp_mobilenet_v3_large video.r3d_18"
)
TIMM = _names(
    "beit_base_patch16_224 cait_xxs24_224 coat_tiny convmixer_768_32 convnextv2_atto crossvit_tiny_240 cspresnet50 "
    "deit_tiny_patch16_224 dla34 edgenext_xx_small efficientformer_l1 fastvit_t8 gcvit_xxtiny ghostnet_100 "
    "hardcorenas_a hrnet_w18_small inception_v4 levit_128s lcnet_050 mixer_s32_224 mobileone_s0 mobilevit_xxs "
    "nfnet_l0 pit_ti_224 poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 res2net50_26w_4s resmlp_12_224 resnest14d "
    "rexnet_100 selecsls42b skresnet18 tf_efficientnet_lite0 tinynet_e tnt_s_patch16_224 tresnet_m "
    "twins_pcpvt_small xception41 xcit_nano_12_p16_224"
)
TRANSFORMERS = _names(
    "albert bart bert bloom convbert deberta-v2 distilbert electra gpt2 gpt_neox llama mamba marian mistral "
    "mobilebert mpnet opt phi qwen2 roberta squeezebert t5 vit wav2vec2 whisper xlm-roberta"
)
KERAS = _names(
    "ConvNeXtTiny DenseNet121 EfficientNetB0 EfficientNetV2B0 InceptionV3 MobileNet MobileNetV2 MobileNetV3Small "
    "ResNet50 ResNet50V2 VGG16 Xception InceptionResNetV2"
)
# Of each kind: convolutions plain, separable, grouped, with squeezing; transformers of images and of text.
TEN = (
    "torchvision resnet18", "torchvision mobilenet_v2", "torchvision mobilenet_v3_small", "torchvision shufflenet_v2_x0_5",
    "torchvision efficientnet_b0", "timm deit_tiny_patch16_224", "timm lcnet_050", "transformers bert",
    "transformers distilbert", "transformers roberta",
)  # fmt: skip
NAMES = [
    *(f"torchvision {name}" for name in TORCHVISION),
    *(f"timm {name}" for name in TIMM),
    *(f"transformers {name}" for name in TRANSFORMERS),
    *(f"keras {name}" for name in KERAS),
    *(f"detector {name}" for name in DETECTORS),
    *(f"yolo {name}" for name in YOLO),
    *(f"rtdetr {name}" for name in RTDETR),
    *(f"{form} {name}" for form in ("half", "quantized", "qdq") for name in TEN),
]


def make(name: str) -> Made:
    """The network of a name of `NAMES`."""
    folder, (family, _, rest) = os.environ.get(KEPT), name.partition(" ")
    if folder is None or name not in TEN:
        return _FAMILIES[family](rest)
    path = Path(folder) / f"{name}.npz"  # exported once for all of its forms, whose processes share the folder
    if not path.exists():
        put(_FAMILIES[family](rest), path)
    return taken(path)


def prepare(family: str) -> None:
    """Imports what networks of a family are made with."""
    if family == "keras":
        os.environ.setdefault("KERAS_BACKEND", "torch")
        import keras  # noqa: F401

        return
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import torch

    torch.set_num_threads(1)  # threads do not live on in a fork
    import_torchvision()
    if family in ("timm", "half", "quantized", "qdq"):
        import timm  # noqa: F401
    if family in ("transformers", "half", "quantized", "qdq"):
        from transformers import AutoModel  # noqa: F401


# ---- torch -------------------------------------------------------------------------------------------------------------


class _First:
    """Makes a module's result a tensor or a tuple of tensors."""

    def __new__(cls, net: Any) -> Any:
        import torch

        class Whole(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = net

            def forward(self, *args: Any) -> Any:
                out = self.net(*args)
                return tuple(v for v in out.values() if torch.is_tensor(v)) if isinstance(out, Mapping) else out

        return Whole().eval()


def _images(*shapes: tuple[int, ...]) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    return [{"x": rng.standard_normal(shape).astype(np.float32)} for shape in shapes]


def _of_images(net: Any, feeds: list[dict[str, np.ndarray]], axes: dict[int, str]) -> Made:
    import torch

    rng = np.random.default_rng(2)
    settled(net, torch.tensor(rng.standard_normal((4, *feeds[0]["x"].shape[1:])), dtype=torch.float32))
    file = exported(_First(net), (torch.tensor(feeds[0]["x"]),), ["x"], {"x": axes})
    return Made(file, runs_of(file, feeds))


def _torchvision(name: str) -> Made:
    import torch

    torchvision = import_torchvision()
    torch.manual_seed(0)
    home, _, short = name.rpartition(".")
    module = getattr(torchvision.models, home) if home else torchvision.models
    given: dict[str, Any] = {"weights": None}
    if home == "segmentation":
        given["weights_backbone"] = None
    if short in ("googlenet", "inception_v3"):
        given |= {"init_weights": False, "aux_logits": False}
    net = getattr(module, short)(**given)
    # Whose windows or pools torch exports for known sizes alone.
    fixed = short in ("alexnet", "inception_v3", "maxvit_t", "swin_t", "swin_v2_t", "vgg11_bn", "vit_b_32")
    side = {"alexnet": 224, "inception_v3": 128, "maxvit_t": 224, "vgg11_bn": 224, "vit_b_32": 224}.get(short, 96)
    if home == "video":
        return _of_images(net, _images((1, 3, 4, 32, 32), (2, 3, 6, 48, 32)), {0: "n", 2: "t", 3: "h", 4: "w"})
    if fixed:
        return _of_images(net, _images((1, 3, side, side), (2, 3, side, side)), {0: "n"})
    return _of_images(net, _images((1, 3, side, side), (2, 3, side, side + 32)), {0: "n", 2: "h", 3: "w"})


def _timm(name: str) -> Made:
    import torch

    import_torchvision()  # which timm imports
    import timm

    torch.manual_seed(0)
    net = timm.create_model(name, pretrained=False, exportable=True, scriptable=False)
    size = (
        net.default_cfg["input_size"][-1] if net.default_cfg.get("fixed_input_size") or "gcvit" in name or "coat" in name else 128
    )
    feeds = _images((1, 3, size, size), (2, 3, size, size))
    return _of_images(net, feeds, {0: "n"})


_TINY = {
    "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, "num_key_value_heads": 2, "embedding_size": 16, "d_model": 32, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48,
    "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "ffn_dim": 48, "word_embed_proj_dim": 32, "pad_token_id": 1,
    "image_size": 32, "patch_size": 8, "state_size": 4, "use_cache": False, "true_hidden_size": 32, "intra_bottleneck_size": 32,
    "num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 20, "conv_dim": (16, 16), "conv_stride": (4, 2),
    "conv_kernel": (8, 3), "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "attn_implementation": "eager",
}  # fmt: skip


def _transformers(name: str) -> Made:
    import torch

    import_torchvision()  # which transformers imports
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    known = AutoConfig.for_model(name).to_dict()
    if name == "mamba":
        known.pop("conv_kernel")  # a number there, sizes of several layers in wav2vec2
    sizes = {k: v for k, v in _TINY.items() if k in known or k in ("use_cache", "attn_implementation")}
    if name == "squeezebert":
        sizes["embedding_size"] = sizes["hidden_size"]
    config = AutoConfig.for_model(name, **sizes)
    net = settled(AutoModel.from_config(config, attn_implementation="eager"))
    rng = np.random.default_rng(0)
    kinds = {"vit": "pixel_values", "wav2vec2": "input_values", "whisper": "input_features"}
    first, feeds, axes = kinds.get(name, "input_ids"), [], {0: "n", 1: "t"}
    for n, t in ((1, 9), (3, 9 if name == "squeezebert" else 14)):
        shape = {"vit": (n, 3, 32, 32), "wav2vec2": (n, 40 * t), "whisper": (n, 16, 40)}.get(name, (n, t))
        x = rng.integers(3, 97, shape) if first == "input_ids" else rng.standard_normal(shape).astype(np.float32)
        feeds.append({first: x})
        if name in ("bart", "marian", "t5", "whisper"):
            feeds[-1]["decoder_input_ids"] = rng.integers(3, 97, (n, 7))
    if name in ("vit", "whisper"):
        axes = {0: "n"}
    names = list(feeds[0])

    class Called(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, *args: Any) -> Any:
            return self.net(**dict(zip(names, args, strict=True)), return_dict=True, use_cache=False)[0]

    class Plain(Called):
        def forward(self, *args: Any) -> Any:
            return self.net(**dict(zip(names, args, strict=True)), return_dict=True)[0]

    inputs = tuple(torch.tensor(x) for x in feeds[0].values())
    dynamic = {n: axes if i == 0 else {0: "n"} for i, n in enumerate(names)}
    try:
        file = exported(Called().eval(), inputs, names, dynamic)
    except TypeError:  # it knows no cache
        file = exported(Plain().eval(), inputs, names, dynamic)
    return Made(file, runs_of(file, feeds))


# ---- Keras -------------------------------------------------------------------------------------------------------------


def _keras(name: str) -> Made:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    side = {"InceptionV3": 96, "Xception": 96, "InceptionResNetV2": 96}.get(name, 64)
    net = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=10, classifier_activation=None)
    rng = np.random.default_rng(0)
    gain = 2**0.5 if name.startswith("VGG") else 1.0  # what ReLU takes, and no normalization gives back
    net.set_weights([unlike(value, rng) * (gain if value.ndim > 1 else 1) for value in net.get_weights()])
    norms = [layer for layer in net._flatten_layers() if isinstance(layer, keras.layers.BatchNormalization)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0  # means and variances become those of the images
    net(rng.standard_normal((4, side, side, 3)).astype(np.float32), training=True)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.keras"
        net.save(path)
        file = path.read_bytes()
    runs, itself = [], 0.0
    for n in (1, 2):
        x = (rng.random((n, side, side, 3)) * 2 - 1).astype(np.float32)
        moved = (x + NEAR * rng.standard_normal(x.shape)).astype(np.float32)
        y, near = (keras.ops.convert_to_numpy(net(given, training=False)) for given in (x, moved))
        itself = max(itself, distance(near, y))
        runs.append(({"x": x}, {"y": y}))
    return Made(file, runs, positional=True, itself=itself)


# ---- other forms -------------------------------------------------------------------------------------------------------


def _half(name: str) -> Made:
    import onnx
    from onnxconverter_common import float16

    whole = make(name)
    model = float16.convert_float_to_float16(onnx.load(io.BytesIO(whole.file)), keep_io_types=True, disable_shape_infer=True)
    file = model.SerializeToString()
    return Made(file, runs_of(file, [feeds for feeds, _ in whole.runs]), "half")


def _quantized(name: str, static: bool = False) -> Made:
    """By onnxruntime's quantizer: with scales found while it runs, or (static) beforehand, from the runs."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    whole = make(name)
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "a.onnx", Path(folder) / "b.onnx"
        before.write_bytes(whole.file)
        if static:
            quant_pre_process(before, before, skip_symbolic_shape=True)
            runs = iter([feeds for feeds, _ in whole.runs])

            class Runs(quantization.CalibrationDataReader):
                def get_next(self) -> Any:
                    return next(runs, None)

            quantization.quantize_static(before, after, Runs(), per_channel=True)
        else:
            quantization.quantize_dynamic(before, after)
        file = after.read_bytes()
    return Made(file, runs_of(file, [feeds for feeds, _ in whole.runs]), "quantized")


def _qdq(name: str) -> Made:
    return _quantized(name, static=True)


_FAMILIES: dict[str, Callable[[str], Made]] = {
    "torchvision": _torchvision, "timm": _timm, "transformers": _transformers, "keras": _keras, "detector": detector,
    "yolo": yolo, "rtdetr": rtdetr,
    "half": _half, "quantized": _quantized, "qdq": _qdq,
}  # fmt: skip
