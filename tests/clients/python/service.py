"""Programs that serve a port while checks ask them."""

import os
import socket
import subprocess
import time


class Service:
    """A program that listens on a free port of this machine, as long as it is open."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def start(self, command, output=subprocess.DEVNULL, **environment):
        """Starts the program, and waits until it listens."""
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        for _ in range(300):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        self.close()
        raise AssertionError(f"{command[0]} does not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        self.process.wait()
