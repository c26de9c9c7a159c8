"""What is known of each real data set: names, sizes, origin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataSet:
    """What is known of a real set; `labels` are the classes as its download spells them, in our order."""

    title: str
    origin: str
    notes: str
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    class_sizes: tuple[int, ...]
    labels: tuple[str, ...] = ()


def _numbered(prefix: str, n: int, first: int = 0) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(first, first + n))


_DIGITS = _numbered("", 10)

SETS: dict[str, DataSet] = {
    "pendigits": DataSet(
        title="Pen-based handwritten digits",
        origin="UCI, Alpaydin and Alimoglu",
        notes="Eight resampled pen positions of each digit, 0 to 100. In the folder's file rows 0 to 7493 "
        "are the official training set.",
        feature_names=tuple(f"{axis}{i}" for i in range(1, 9) for axis in "xy"),
        target_names=_DIGITS,
        class_sizes=(1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055),
        labels=_DIGITS,
    ),
    "covtype": DataSet(
        title="Forest cover type",
        origin="UCI, Blackard and Dean, Colorado State University",
        notes="Ten measurements, four flags of wilderness area and forty of soil type for each 30 m cell.",
        feature_names=(
            "elevation",
            "aspect",
            "slope",
            "horizontal_distance_to_hydrology",
            "vertical_distance_to_hydrology",
            "horizontal_distance_to_roadways",
            "hillshade_9am",
            "hillshade_noon",
            "hillshade_3pm",
            "horizontal_distance_to_fire_points",
            *_numbered("wilderness_area_", 4, first=1),
            *_numbered("soil_type_", 40, first=1),
        ),
        target_names=(
            "spruce/fir",
            "lodgepole pine",
            "ponderosa pine",
            "cottonwood/willow",
            "aspen",
            "douglas-fir",
            "krummholz",
        ),
        class_sizes=(211840, 283301, 35754, 2747, 9493, 17367, 20510),
        labels=_numbered("", 7, first=1),
    ),
    "mnist": DataSet(
        title="MNIST handwritten digits",
        origin="LeCun, Cortes and Burges",
        notes="Grey images of 28 x 28 pixels, row by row, 0 to 255. In the folder's file rows 0 to 59999 are "
        "the official training set.",
        feature_names=_numbered("pixel_", 784),
        target_names=_DIGITS,
        class_sizes=(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        labels=_DIGITS,
    ),
    "usps": DataSet(
        title="USPS zip-code digits",
        origin="Le Cun et al. 1990, the version of The Elements of Statistical Learning",
        notes="Grey images of 16 x 16 pixels, row by row, -1 to 1. In the folder's file rows 0 to 7290 are "
        "the official training set.",
        feature_names=_numbered("pixel_", 256),
        target_names=_DIGITS,
        class_sizes=(1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        labels=_numbered("", 10, first=1),
    ),
    "segment": DataSet(
        title="Image segmentation",
        origin="UCI, Vision Group of the University of Massachusetts",
        notes="Statistics of 3 x 3 pixel regions of seven outdoor images. One column, region-pixel-count, is "
        "constant, and 224 rows repeat another row.",
        feature_names=(
            "region-centroid-col",
            "region-centroid-row",
            "region-pixel-count",
            "short-line-density-5",
            "short-line-density-2",
            "vedge-mean",
            "vedge-sd",
            "hedge-mean",
            "hedge-sd",
            "intensity-mean",
            "rawred-mean",
            "rawblue-mean",
            "rawgreen-mean",
            "exred-mean",
            "exblue-mean",
            "exgreen-mean",
            "value-mean",
            "saturation-mean",
            "hue-mean",
        ),
        target_names=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
        class_sizes=(330,) * 7,
        labels=("brickface", "sky", "foliage", "cement", "window", "path", "grass"),
    ),
    "a3": DataSet(
        title="A3, fifty overlapping groups in the plane",
        origin="Karkkainen and Franti 2002, University of Eastern Finland",
        notes="Synthetic, 150 points in each group, coordinates 0 to 65535.",
        feature_names=("x", "y"),
        target_names=_numbered("group_", 50),
        class_sizes=(150,) * 50,
    ),
    "coil20": DataSet(
        title="COIL-20 object images",
        origin="Nene, Nayar and Murase 1996, the 32 x 32 version of D. Cai",
        notes="Twenty objects seen from 72 sides; grey images, column by column, 0 to 1.",
        feature_names=_numbered("pixel_", 1024),
        target_names=_numbered("object_", 20, first=1),
        class_sizes=(72,) * 20,
    ),
    "pie_first10": DataSet(
        title="CMU PIE faces, the first ten subjects",
        origin="Carnegie Mellon University, the 32 x 32 version of D. Cai",
        notes="A part of PIE, which has 68 subjects: never report a result on it as one on PIE. Grey images, "
        "column by column, 0 to 255.",
        feature_names=_numbered("pixel_", 1024),
        target_names=_numbered("subject_", 10, first=1),
        class_sizes=(170,) * 10,
    ),
}
