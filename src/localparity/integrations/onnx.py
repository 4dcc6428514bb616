"""ONNX: networks and XGBoost's trees as one file that any runtime scores with, without Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._io._files import write_whole
from localparity._validation import InputError, require

if TYPE_CHECKING:
    from localparity.models import LocalParityClassifier, LocalParityXGBClassifier

__all__ = ["to_onnx"]

_INPUT, _OUTPUT = "features", "score"


def to_onnx(model: LocalParityClassifier | LocalParityXGBClassifier, path: str | Path) -> None:
    """Write a fitted model as an ONNX file.

    Its input, ``features``, is a matrix of doubles with the columns of the table that the model was fitted
    on: numbers as they are, texts as their index in ``encoder_.categories_``, and NaN for a missing number or
    an unknown text. Its output, ``score``, is the probability of the second class, as `predict_proba`
    returns it up to single precision.

    Parameters
    ----------
    model : LocalParityClassifier or LocalParityXGBClassifier
        The fitted model. Trees must have been fitted on numbers alone: splits by category have no exporter.
    path : str or Path
        The file, which is replaced if it exists.

    Examples
    --------
    >>> import localparity as lp
    >>> from localparity.integrations.onnx import to_onnx
    >>> census = lp.datasets.make_census(500, random_state=0)
    >>> model = lp.models.LocalParityClassifier(steps=20, random_state=0)
    >>> model = model.fit(census.data, census.target, sensitive_features=census.sensitive_features)
    >>> to_onnx(model, "model.onnx")  # doctest: +SKIP
    """
    from sklearn.utils.validation import check_is_fitted

    exporters = {"LocalParityClassifier": _network, "LocalParityXGBClassifier": _trees}
    kind = type(model).__name__
    if kind not in exporters:
        raise InputError(f"must be a {' or a '.join(exporters)}, got a {kind}", "model")
    check_is_fitted(model)
    write_whole(Path(path), exporters[kind](model).SerializeToString())


def _network(model: Any) -> Any:
    """A network with the encoding of its table in front, by torch's exporter."""
    torch = require("torch", extra="train")
    require("onnxscript", extra="onnx")
    encoder = model.encoder_

    class Scores(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = model.network_.eval()

        def forward(self, features: Any) -> Any:
            blocks = []
            for index, categories in enumerate(encoder.categories_):
                column = features[:, index : index + 1]
                if categories is not None:
                    codes = torch.arange(len(categories), dtype=column.dtype)
                    blocks.append((column == codes).to(column.dtype))
                    continue
                missing = torch.isnan(column)
                scaled = (column - float(encoder.means_[index])) / float(encoder.scales_[index])
                blocks.append(torch.where(missing, torch.zeros_like(scaled), scaled))
                if encoder.missing_[index]:
                    blocks.append(missing.to(column.dtype))
            rows = torch.cat(blocks, dim=1).to(self.network.head.weight.dtype)
            return torch.sigmoid(self.network(rows)).to(torch.float64)

    example = torch.zeros(2, len(encoder.categories_), dtype=torch.float64)
    rows = torch.export.Dim("rows")
    program = torch.onnx.export(
        Scores().eval(),
        (example,),
        input_names=[_INPUT],
        output_names=[_OUTPUT],
        dynamic_shapes=({0: rows},),
        dynamo=True,
        verbose=False,
    )
    return program.model_proto


def _trees(model: Any) -> Any:
    """Trees by onnxmltools' exporter, between an input and an output of doubles."""
    if model.text_features_:
        listed = ", ".join(map(repr, model.text_features_))
        raise InputError(f"must have been fitted on numbers alone, got the text columns {listed}", "model")
    onnx, tools = require("onnx", extra="onnx"), require("onnxmltools", extra="onnx")
    types = require("onnxmltools.convert.common.data_types", extra="onnx")
    booster = model.booster_.copy()
    booster.feature_names = booster.feature_types = None  # the exporter takes no other names than its own
    width = model.n_features_in_
    inner = tools.convert_xgboost(booster, initial_types=[("single", types.FloatTensorType([None, width]))])
    probabilities = inner.graph.output[1].name
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Cast", [_INPUT], ["single"], to=kinds.FLOAT),
        *inner.graph.node,
        helper.make_node("Gather", [probabilities, "second"], ["chosen"], axis=1),
        helper.make_node("Cast", ["chosen"], [_OUTPUT], to=kinds.DOUBLE),
    ]
    graph = helper.make_graph(
        nodes,
        "localparity",
        [helper.make_tensor_value_info(_INPUT, kinds.DOUBLE, ["rows", width])],
        [helper.make_tensor_value_info(_OUTPUT, kinds.DOUBLE, ["rows"])],
        [*inner.graph.initializer, onnx.numpy_helper.from_array(np.array(1), "second")],
    )
    made = helper.make_model(graph, opset_imports=_opsets(inner, onnx), ir_version=inner.ir_version)
    onnx.checker.check_model(made)
    return made


def _opsets(inner: Any, onnx: Any) -> list[Any]:
    """The operator sets of a converted model, with the standard one if it has none."""
    versions = {"": 15} | {opset.domain: opset.version for opset in inner.opset_import}
    return [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
