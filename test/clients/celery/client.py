# What the test asks of the tasks, by its argument.
import datetime
import sys
import time

import jobs


def everyday():
    jobs.bill.delay("R-1")
    for n in range(20):
        jobs.work.delay(n)
    jobs.flaky.delay(2)
    at = time.time() + 3
    jobs.due.apply_async((at,), countdown=3)
    eta = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
    jobs.due.apply_async((eta.timestamp(),), eta=eta)
    jobs.work.apply_async(("elsewhere",), queue="reports")
    jobs.work.apply_async(("ü" * 10_000,))


def held():
    jobs.held.delay(sys.argv[2])


# Prints how many messages the queues have that Celery has made.
def left():
    with jobs.app.connection_for_read() as connection:
        channel = connection.channel()
        sqs = channel.sqs()
        for name in ("celery", "reports"):
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            a = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            print(name, a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"], a["VisibilityTimeout"])


{"everyday": everyday, "held": held, "left": left}[sys.argv[1]]()
