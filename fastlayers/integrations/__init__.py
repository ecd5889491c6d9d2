"""fastlayers on engines that spread work over processes and machines: Ray, Dask, Spark and joblib.

One module for each: `ray.Predictor`, `dask.predict`, `spark.predict_fn`, `joblib.predict`. What travels to a worker is the path
of a model, never its weights: `ModelFile` holds the path together with a digest of the content, so that no worker computes with
another model than the rest. Every worker loads the file once. Nothing of an engine is imported before it is used.
"""

from ._model_file import ModelFile

__all__ = ["ModelFile"]
