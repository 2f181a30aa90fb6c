"""Gradient boosting: fits of scikit-learn, XGBoost and LightGBM, timed as the steps of a training are."""
