

def test_an_interruption_that_python_drops_ends_the_process_all_the_same() -> None:
    program = (
        "import os, signal, time, weakref; from probes import worker; worker.GRACE_S = 0.5\n"
        "signal.signal(signal.SIGTERM, worker._interrupt)\n"
        "class Thing: pass\n"
        "thing = Thing(); weakref.finalize(thing, lambda: os.kill(os.getpid(), signal.SIGTERM)); del thing\n"
        "time.sleep(60)"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, timeout=50)

    assert done.returncode in (130, 1)  # 1 where Python did raise it
