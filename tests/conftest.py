import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: scikit-learn then runs its array checks too
