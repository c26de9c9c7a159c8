import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before SciPy is imported: scikit-learn then runs its array checks too

from hypothesis import settings

settings.register_profile("mercer", deadline=None)  # a busy machine is no failure
settings.load_profile("mercer")
