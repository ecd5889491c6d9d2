"""What more threads would do is foreseen from the real cut: results stay, every task counts once, and arithmetic is right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bench import scaling


def test_times_are_the_shortest_of_all_runs() -> None:
    times = np.array([[5_000, 100_000], [6_000, 90_000]])
    jobs = np.array([[0, 8, 4, 4_000, 1_500], [1, 8, 4, 90_000, 30_000], [0, 8, 4, 4_000, 3_000], [1, 8, 4, 80_000, 30_000]])
    foreseen = scaling.spread(times, jobs)
    np.testing.assert_array_equal(
        foreseen, [5_000 - 4_000 + 1_500 + scaling.DISPATCH, 100_000 - 90_000 + 30_000 + scaling.DISPATCH]
    )
    np.testing.assert_array_equal(scaling.spread(times, jobs[:0]), [5_000, 90_000])


def test_steps_are_cut_for_threads_that_do_not_exist(run_script: Callable[[str], str]) -> None:
    script = """
        import numpy as np
        import fastlayers as fl
        from bench import scaling
        layer = fl.Conv2d(64, 128, 1)
        layer.load_state_dict({name: np.ones(shape, np.float32) for name, shape in layer.tensor_shapes().items()})
        x = np.random.default_rng(0).standard_normal((1, 64, 56, 56)).astype(np.float32)
        found, results = {}, []
        for threads in (1, 2, 4, 8, 64):
            fl.set_num_threads(threads)
            model = fl.compile(layer, x)
            found[threads] = scaling.foresee(model, [x], threads)
            rows = np.zeros((100, 5), np.int64)
            engine.watch_jobs(rows)
            results.append(model(x))
            count = engine.watch_jobs()
            for _, tasks, hands, together, busiest in rows[:count].tolist():
                assert 1 < hands <= threads and tasks >= hands and busiest <= together <= hands * busiest
            assert (count > 0) == (threads > 1)
            assert all((result == results[0]).all() for result in results)
        assert engine.pool_workers() == 0, "nothing was really started"
        step = {threads: max(foreseen, key=lambda s: s.ns) for threads, foreseen in found.items()}
        assert step[64].tasks >= 8
        assert step[4].ns < 0.6 * step[1].ns, step
    """
    run_script(script)
