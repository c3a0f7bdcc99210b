"""Numbers that steer the speed of passes over rows, one object for each backend.

None of them changes what is minimised. They do change in which order sums are rounded, and which
solver is taken, so they are the same on every machine.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class LocalTuning:
    """For rows in a machine's memory, dense or CSR; workers of a cluster have it too."""

    # Scores of this many rows stay in cache between the two products that need them.
    rows_per_block: int = 256
    # At least this many rows per task: fewer would not make up for adding their gradients.
    rows_per_chunk: int = 1024
    # Gradients of all chunks of rows that wait to be added up may take so much memory; but fewer
    # columns at a time than this would not fill vector registers.
    bytes_of_gradients: int = 2**28
    fewest_columns: int = 16
    # This many tasks per thread lie between two looks at progress and interrupts.
    tasks_per_thread: int = 4

    # Beyond this many features the eigenvectors of a dense matrix's covariance cost more than the
    # passes they save; of a sparse one turning coefficients and gradients does so much earlier.
    most_rotated_dense: int = 4096
    most_rotated_sparse: int = 1024
    # Up to here eigenvectors take less time than BLAS's threads spin after helping with them.
    few_features: int = 256
    # Large products are shared out in parts of at least this many rows.
    rows_per_product: int = 64
    # OpenBLAS has a quicker kernel, without packing, for products of at most this many steps.
    small_product: int = 1_000_000
    # Squares and products of this many rows, in float64, are held at a time for moments.
    rows_per_moment: int = 2048

    # Numbers held at most in the table of products of features, and in the scores of all problems:
    # up to here Newton's method is the quickest.
    largest_table: float = 2_000_000

    # Rows sampled per variable of a Hessian, whose relative error is about 2 / sqrt(this).
    rows_per_variable: int = 12
    # This many draws take every row, as often as its curvature says: no sampling error to speak of.
    draws_of_all_rows: int = 10_000_000
    # Rounds before a Hessian is worth having: earlier it would be stale at once.
    min_patience: int = 6
    # A pass over fewer problems than this takes as long as one over this many.
    narrow_pass: int = 64
    bytes_of_hessians: int = 2**28
    # Multiplications, times d^3, that turning and factoring a Hessian are worth: float64, small
    # blocks.
    factor_flops: int = 16
    # A stored value of a sparse matrix takes as long as this many multiplications of a dense
    # product.
    flops_per_stored_value: int = 8


@dataclass(slots=True)
class DeviceTuning:
    """For rows on a CUDA device."""

    rows_per_block: int = 2**18
    # Scores held at a time. Each block adds to all gradients, so a few large ones are best.
    cells_per_block: int = 2**28
    # Tensor cores want columns in multiples of this.
    column_parts: int = 8
    # Above this share of stored values a dense product is the quicker one.
    dense_above: float = 0.01
    # Beyond this many features eigenvectors cost more than the passes they save.
    most_rotated: int = 2048
    # Rows are multiplied in at most this many parts side by side, and no more than let the results
    # have this many cells: one small product has too few tiles for a device.
    most_parts: int = 32
    cells_of_parts: int = 2**23
    # Products with this few columns take as long as reading X, and splitting X would take longer.
    narrow: int = 64

    # Hessians of this many multiplications are worth having at every step, for tables of this many
    # cells. A cell takes this many bytes, with its copies for some folds and what is made of it in
    # a step.
    largest_work: float = 2e12
    largest_table: int = 2**26
    bytes_per_cell: int = 100

    # Rows sampled per variable of a Hessian, and cells of them at a time: float64, and some copies.
    rows_per_variable: int = 32
    cells_at_a_time: int = 2**26
    # Hessians of the last problems may take so much memory, or those go on without; old ones are
    # stale after this many rounds.
    bytes_of_hessians: int = 2**31
    rounds_per_hessian: int = 8


LOCAL, DEVICE = LocalTuning(), DeviceTuning()
