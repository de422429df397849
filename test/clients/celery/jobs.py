# What workers of the test run beside the recipe of README.md. Tasks tell what they have
# done by a line of a file, as several processes run them.
import os
import time

from celery import Task
from tasks import app, bill  # the recipe's

app.conf.broker_transport_options = {
    **app.conf.broker_transport_options,
    "visibility_timeout": 20,
    "polling_interval": 0.1,
    "wait_time_seconds": 1,
}
app.conf.task_acks_late = True
app.conf.worker_prefetch_multiplier = 1
app.conf.worker_send_task_events = False

DIR = os.environ["JOBS_DIR"]


def tell(line):
    with open(os.path.join(DIR, "done"), "a") as f:
        f.write(line + "\n")


class Told(Task):
    def on_success(self, retval, task_id, args, kwargs):
        tell(f"{self.name.split('.')[-1]} {' '.join(map(str, args))} {self.request.retries}")


@app.task(base=Told, ignore_result=True)
def work(n):
    return n


@app.task(base=Told, bind=True, max_retries=3, default_retry_delay=1)
def flaky(self, n):
    if self.request.retries < n:
        raise self.retry()


@app.task(base=Told)
def due(at):
    if time.time() < at - 0.1:
        tell(f"too early by {at - time.time()}")


# The first to have it waits until the file "go" is there: it is killed before.
@app.task(base=Told)
def held(name):
    try:
        os.close(os.open(os.path.join(DIR, f"{name}.{os.getppid()}"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        pass
    while not os.path.exists(os.path.join(DIR, "go")):
        time.sleep(0.05)
