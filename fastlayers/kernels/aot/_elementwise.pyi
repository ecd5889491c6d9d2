from ._step import Step

Shape = tuple[int, ...]
Operation = tuple[int, int, int, tuple[int, ...], tuple[float, ...]]

def elementwise_step(
    shapes: tuple[Shape, ...],
    itemsizes: tuple[int, ...],
    shape: Shape,
    operations: tuple[Operation, ...],
    slots: int,
    work: float,
) -> Step | None: ...
