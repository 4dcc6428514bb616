"""ONNX: networks and boosted trees as one file that any runtime scores with, without Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localparity._io._files import write_whole
from localparity._validation import InputError, require
from localparity.models.trees._kernels import MISSING_LEFT, ZERO_MISSING

if TYPE_CHECKING:
    from localparity.models import (
        LocalParityClassifier,
        LocalParityLGBMClassifier,
        LocalParityXGBClassifier,
    )

__all__ = ["to_onnx"]

_INPUT, _OUTPUT = "features", "score"
_TREES = "ai.onnx.ml"


def to_onnx(
    model: LocalParityClassifier | LocalParityLGBMClassifier | LocalParityXGBClassifier, path: str | Path
) -> None:
    """Write a fitted model as an ONNX file.

    Its input, ``features``, is a matrix of doubles with the columns of the table that the model was fitted
    on: numbers as they are, texts as their index in ``encoder_.categories_``, and NaN for a missing number or
    an unknown text. Its output, ``score``, is the probability of the second class, as `predict_proba`
    returns it up to single precision.

    Parameters
    ----------
    model : LocalParityClassifier, LocalParityLGBMClassifier or LocalParityXGBClassifier
        The fitted model. Trees must have been fitted on numbers alone: ONNX has no splits by category.
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

    exporters = {
        "LocalParityClassifier": _network,
        "LocalParityLGBMClassifier": _trees,
        "LocalParityXGBClassifier": _trees,
    }
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
    """Trees as the standard's own ensemble, with numbers in double precision."""
    if model.text_features_:
        listed = ", ".join(map(repr, model.text_features_))
        raise InputError(f"must have been fitted on numbers alone, got the text columns {listed}", "model")
    onnx, forest = require("onnx", extra="onnx"), model.model_.forest
    if (forest.flags & ZERO_MISSING).any():
        raise InputError("must not have been fitted with zeros as missing values", "model")
    helper, kinds = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("Cast", [_INPUT], ["single"], to=kinds.FLOAT)] if forest.single else []
    nodes += [
        helper.make_node("Cast", ["single" if forest.single else _INPUT], ["double"], to=kinds.DOUBLE),
        helper.make_node("TreeEnsembleRegressor", ["double"], ["sum"], domain=_TREES, **_ensemble(forest)),
        helper.make_node("Sigmoid", ["sum"], ["scores"]),
        helper.make_node("Squeeze", ["scores", "second"], ["chosen"]),
        helper.make_node("Cast", ["chosen"], [_OUTPUT], to=kinds.DOUBLE),
    ]
    graph = helper.make_graph(
        nodes,
        "localparity",
        [helper.make_tensor_value_info(_INPUT, kinds.DOUBLE, ["rows", forest.n_features])],
        [helper.make_tensor_value_info(_OUTPUT, kinds.DOUBLE, ["rows"])],
        [onnx.numpy_helper.from_array(np.array([1]), "second")],
    )
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid(_TREES, 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(made)
    return made


def _ensemble(forest: Any) -> dict[str, Any]:
    """The attributes of the standard's ensemble of trees; nodes are counted from their trees' roots."""
    onnx = require("onnx", extra="onnx")
    sizes = np.diff([*forest.roots, forest.feature.size])
    tree, root = np.repeat(np.arange(sizes.size), sizes), np.repeat(forest.roots, sizes)
    node, leaf = np.arange(forest.feature.size) - root, forest.feature < 0

    def numbers(values: Any, name: str) -> Any:
        return onnx.numpy_helper.from_array(np.asarray(values, dtype=np.float64), name)

    whole = {
        "nodes_treeids": tree,
        "nodes_nodeids": node,
        "nodes_featureids": np.where(leaf, 0, forest.feature),
        "nodes_truenodeids": np.where(leaf, 0, forest.left - root),
        "nodes_falsenodeids": np.where(leaf, 0, forest.right - root),
        "nodes_missing_value_tracks_true": forest.flags & MISSING_LEFT > 0,
        "target_treeids": tree[leaf],
        "target_nodeids": node[leaf],
        "target_ids": np.zeros(leaf.sum()),
    }
    return {
        "n_targets": 1,
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        **{name: values.astype(int).tolist() for name, values in whole.items()},
        "base_values_as_tensor": numbers([forest.start], "start"),
        "nodes_values_as_tensor": numbers(np.where(leaf, 0.0, forest.value), "values"),
        "target_weights_as_tensor": numbers(forest.value[leaf], "weights"),
    }
