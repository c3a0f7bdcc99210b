"""Public multilabel data sets: their sizes, where they come from, and how they are split."""

from dataclasses import dataclass
from typing import Any

_MULAN = "http://mulan.sourceforge.net/datasets.html"
_MULAN_FILES = (
    "https://raw.githubusercontent.com/tsoumakas/mulan/"
    "43f6389095ad71984264db4387a8074b22bc7d4a/data/multi-label/"
)
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel.html"
_LAMDA = "http://www.lamda.nju.edu.cn/data_MIMLimage.ashx"
_XMC = "http://manikvarma.org/downloads/XC/XMLRepository.html"
_UNSTATED = "none stated"


@dataclass(frozen=True)
class File:
    """A file of a data set: its path below the data folder, its checksum, where to get it.

    Without a checksum it may be plain or packed (.gz, .bz2, .xz).
    """

    name: str
    sha256: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Relevant:
    """Numbers of relevant labels per row: the least, the total over all rows, and the largest."""

    least: int
    total: int
    largest: int


@dataclass(frozen=True)
class DataSet:
    """An entry of the catalogue.

    `parts` are the files of the training and the test rows, or one file of all of them, whose rows
    are then split at random. `relevant` tells the label sets of each part, where they were counted.

    Examples
    --------
    >>> from deltarank.datasets import CATALOGUE
    >>> yeast = CATALOGUE["yeast"]
    >>> yeast.n_train, yeast.n_test, yeast.n_features, yeast.n_labels, yeast.split
    (1500, 917, 103, 14, 'original')
    >>> [file.name for file in yeast.files]
    ['yeast/yeast-train.arff', 'yeast/yeast-test.arff', 'yeast/yeast.xml']
    """

    name: str
    n_train: int
    n_test: int
    n_features: int
    n_labels: int
    parts: tuple[File, ...]
    labels: File | None = None
    relevant: tuple[Relevant, ...] = ()
    format: str = "arff"
    dense: bool = False
    source: str = _MULAN
    licence: str = _UNSTATED

    @property
    def split(self) -> str:
        """How training and test rows are told apart."""
        return "original" if len(self.parts) == 2 else "random"

    @property
    def files(self) -> tuple[File, ...]:
        """All the files."""
        return self.parts if self.labels is None else (*self.parts, self.labels)


def table1_row(entry: DataSet, relevant: Relevant | None, n_rows: int) -> dict[str, Any]:
    """Return the columns of the paper's Table 1."""
    row: dict[str, Any] = {
        "dataset": entry.name,
        "#train": entry.n_train,
        "#test": entry.n_test,
        "#attr.": entry.n_features,
        "#lab.": entry.n_labels,
        "min": "",
        "ave.": "",
        "max": "",
    }
    if relevant is not None:
        row |= {
            "min": relevant.least,
            "ave.": round(relevant.total / n_rows, 2),
            "max": relevant.largest,
        }
    return row


def _mulan(
    name: str,
    sizes: tuple[int, int, int, int],
    checksums: tuple[str, ...],
    relevant: tuple[Relevant, ...] = (),
    names: tuple[str, ...] = (),
) -> DataSet:
    """Make the entry of a set in MULAN's repository; the last file names the labels."""
    names = names or (f"{name}-train.arff", f"{name}-test.arff", f"{name}.xml")
    *parts, labels = (
        File(f"{name}/{file}", checksum, f"{_MULAN_FILES}{name}/{file}")
        for file, checksum in zip(names, checksums, strict=True)
    )
    return DataSet(name, *sizes, tuple(parts), labels, relevant)


_ENTRIES = (
    DataSet(
        "image", 1200, 800, 135, 5,
        (File("image/image.arff"),),
        File("image/image.xml"),
        (Relevant(1, 2472, 3),),
        source=_LAMDA,
    ),
    _mulan(
        "emotions", (391, 202, 72, 6),
        (
            "bbe704106c79bb8fb99c1d1d2e9bde081d6a2daeb01f100862f11fd91a3c1f98",
            "f13d4b746b7b5c8eb484bd751d6ac463d4560dff998a93516a5c1fe35daf6c8f",
            "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0",
        ),
        (Relevant(1, 709, 3), Relevant(1, 399, 3)),
    ),
    _mulan(
        "scene", (1211, 1196, 294, 6),
        (
            "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d",
            "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42",
            "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5",
        ),
        (Relevant(1, 1286, 3), Relevant(1, 1299, 2)),
    ),
    _mulan(
        "yeast", (1500, 917, 103, 14),
        (
            "e759dc991ff54694a4ff9c4314f3be0d6fd2b1994a4b563f57e416394c6aebbd",
            "4aaac102bff9669a765bf0b378602e5cc8c3b181048282e2f003117b496d552a",
            "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247",
        ),
        (Relevant(1, 6342, 11), Relevant(1, 3899, 10)),
    ),
    DataSet(
        "mediamill", 30993, 12914, 120, 101,
        (File("mediamill/mediamill-train.svm"), File("mediamill/mediamill-test.svm")),
        relevant=(Relevant(0, 135217, 18), Relevant(0, 56901, 16)),
        format="libsvm", dense=True, source=_LIBSVM,
    ),
    _mulan(
        "delicious", (12920, 3185, 500, 983),
        (
            "030186cdb542ebdd32052fcdbb1ebe30115b3a22518c1b4b198c45eb827aebe1",
            "2dfb01723a819914b0ca83361177ed413ce3f2169851d9f228d4692915d63944",
            "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
        ),
        (Relevant(0, 246088, 25), Relevant(0, 60229, 25)),
    ),
    DataSet(
        "eurlex-4k", 15539, 3809, 5000, 3993,
        (File("eurlex-4k/eurlex_train.txt"), File("eurlex-4k/eurlex_test.txt")),
        relevant=(Relevant(0, 82530, 24), Relevant(0, 20211, 18)),
        format="xmc", source=_XMC,
    ),
    _mulan(
        "bibtex", (4880, 2515, 1836, 159),
        (
            "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174",
            "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922",
            "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
        ),
    ),
    _mulan(
        "corel5k", (4500, 500, 499, 374),
        (
            "19eb253c447144bea74ffa86b4731a56022addae2ba7d0aab72ad07fdc02e9b3",
            "e8f8e9cd052c43ba7bdfdf99d242f461fc8c2a03163466d921e576887b51d8a7",
            "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d",
        ),
        names=("Corel5k-train-sparse.arff", "Corel5k-test-sparse.arff", "Corel5k.xml"),
    ),
    _mulan(
        "enron", (1123, 579, 1001, 53),
        (
            "2988cefc1cdf7a8004a20ef84615cc8fa1b5d7434c16687283b41454e2d9d194",
            "2f3aad54a8f54caaab4ab01246fe9dd385ba944a2633028f52747b57eac5474e",
            "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b",
        ),
    ),
    _mulan(
        "medical", (333, 645, 1449, 45),
        (
            "c764f45756ab1c553b8b4eaaf5605a5610a43bbbcf37492d0f1a12bf9c9e2244",
            "6be472e75a6c0b0916187f343a398011b1b26f8f0ddc682c575312ad3532f6c4",
            "51fa9d5c09e48caff3f0a0c75db1c9aa85944f8e35451f3ad8bd56fc422286ce",
        ),
    ),
    _mulan(
        "birds", (322, 323, 260, 19),
        (
            "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36",
            "51ba6326d65ccdd7c755b6461280eb6d2769c7f59d8e12fd4250f91e6ca28326",
            "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f",
        ),
    ),
    _mulan(
        "flags", (129, 65, 19, 7),
        (
            "1861cdab7f8baf1aef6fb6198f304465ddfd99b7f9a435337c604119522df3c5",
            "09f6136fae47dcc2f0f491efd6401a11072cbfb0bfbb2666c63b35bb06aeeb16",
            "7c9ed21a91b716b91f811323e20ee5a260ea2da62a5edcfeb1b91ec855a48f17",
        ),
    ),
    _mulan(
        "cal500", (335, 167, 68, 174),
        (
            "cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3",
            "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c",
        ),
        names=("cal500.arff", "cal500.xml"),
    ),
)  # fmt: skip
CATALOGUE = {entry.name: entry for entry in _ENTRIES}
