"""What the paper prints in its tables."""

TABLE1 = {
    "image": (1200, 800, 135, 5, 1, 1.24, 3),
    "emotions": (391, 202, 72, 6, 1, 1.96, 3),
    "scene": (1211, 1196, 294, 6, 1, 1.06, 3),
    "yeast": (1500, 917, 103, 14, 1, 4.23, 11),
    "mediamill": (30993, 12914, 120, 101, 0, 4.36, 18),
}
TABLE1_COLUMNS = ("#train", "#test", "#attr.", "#lab.", "min", "ave.", "max")

TABLE2 = {
    "image": {"AB.MR": 0.2081, "WBR-AB": 0.2041, "LLLR": 0.2047, "WBR-LR": 0.2065},
    "emotions": {"AB.MR": 0.1703, "WBR-AB": 0.1699, "LLLR": 0.1743, "WBR-LR": 0.1657},
    "scene": {"AB.MR": 0.0720, "WBR-AB": 0.0792, "LLLR": 0.0861, "WBR-LR": 0.0793},
    "yeast": {"AB.MR": 0.2072, "WBR-AB": 0.1820, "LLLR": 0.1728, "WBR-LR": 0.1736},
    "mediamill": {"AB.MR": 0.0665, "WBR-AB": 0.0609, "LLLR": 0.0614, "WBR-LR": 0.0472},
}
