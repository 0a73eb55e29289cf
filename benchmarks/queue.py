"""What the in-process queue costs, beside `concurrent.futures.ThreadPoolExecutor` in the same run.

    python benchmarks/queue.py            the figures of the README
    python benchmarks/queue.py --quick    the same on small inputs, to see that it runs

The figures are taken in `jobqueue.py`; this file only bears the name.
"""

if __name__ == "__main__":
    from jobqueue import main

    main()
else:
    # Python puts a script's own folder first on sys.path: whatever imports the standard library's `queue` on behalf
    # of a script of this folder (`concurrent.futures` does) finds this file, and is handed the real one.
    import importlib.util
    import sys
    from importlib.machinery import PathFinder
    from pathlib import Path

    here = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("queue", [place for place in sys.path if Path(place).resolve() != here])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["queue"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["queue"])
