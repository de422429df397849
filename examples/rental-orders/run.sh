#!/usr/bin/env bash
# The rental example with the AWS CLI, from start to end: README.md tells the
# story. Every line that begins with "ok" has been checked; the first that is
# not as it should be ends the script with status 1.
# Needs: go, aws (v1 or v2), curl, jq. Takes about a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

address=${RENTAL_GODWIT:-127.0.0.1:14566}
billing=${RENTAL_BILLING:-127.0.0.1:18099}
export AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_PAGER=
unset AWS_SESSION_TOKEN AWS_PROFILE
# Version 1 of the CLI does not heed AWS_ENDPOINT_URL for SQS: it replaces it by
# a name that AWS's old certificates had. The option always counts.
aws() { command aws --endpoint-url "http://$address" "$@"; }

work=$(mktemp -d)
godwit_pid='' billing_pid=''
cleanup() {
	status=$?
	for pid in $godwit_pid $billing_pid; do
		kill -9 "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	if [ "$status" -ne 0 ] && [ -s "$work/godwit.log" ]; then
		echo "--- the server's log"
		tail -n 30 "$work/godwit.log"
	fi
	rm -rf "$work"
}
trap cleanup EXIT

step() { printf '\n== %s\n' "$1"; }

# check WHAT GOT WANT
check() {
	if [ "$2" != "$3" ]; then
		printf 'FAILED %s: got "%s", want "%s"\n' "$1" "$2" "$3"
		exit 1
	fi
	printf 'ok %s: %s\n' "$1" "$2"
}

# await WHAT WANT COMMAND…: until the command prints WANT, for 30 seconds.
await() {
	local what=$1 want=$2 got='' deadline=$((SECONDS + 30))
	shift 2
	until got=$("$@" 2>/dev/null) && [ "$got" = "$want" ]; do
		if [ "$SECONDS" -ge "$deadline" ]; then
			printf 'FAILED %s: after 30 s still "%s", want "%s"\n' "$what" "$got" "$want"
			exit 1
		fi
		sleep 0.05 # between two probes
	done
	printf 'ok %s: %s\n' "$what" "$got"
}

healthy() { curl -fsS -o /dev/null -w '%{http_code}' "http://$address/_godwit/health"; }

# Without jitter the schedule is exactly the policy's.
start_godwit() {
	"$work/godwit" --listen "$address" --data "$work/data" --log-level warn --jitter 0 >>"$work/godwit.log" 2>&1 &
	godwit_pid=$!
	await 'the server is healthy' 200 healthy
}

set_billing() { curl -fsS -X PUT "http://$billing/status/$1"; }
tries() { curl -fsS "http://$billing/arrivals/$1" | jq length; }
answers() { curl -fsS "http://$billing/arrivals/$1" | jq -r '[.[].status | tostring] | join(" ")'; }

# The server's account of a message on its way: deliveries SUBSCRIPTION ID
deliveries() {
	curl -fsS -G --data-urlencode "subscription=$1" "http://$address/_godwit/v1/deliveries" |
		jq -c --arg id "$2" '[.deliveries[] | select(.messageId == $id)]'
}
state() { deliveries "$1" "$2" | jq -r '.[0] | "\(.state) after \(.attempts | length)"'; }

# make_queue NAME [ATTRIBUTES]: prints its URL
make_queue() {
	aws sqs create-queue --queue-name "$1" ${2:+--attributes "$2"} --query QueueUrl --output text
}
arn_of() {
	aws sqs get-queue-attributes --queue-url "$1" --attribute-names QueueArn --query Attributes.QueueArn --output text
}
count() {
	aws sqs get-queue-attributes --queue-url "$1" --attribute-names All --output json | jq -r '.Attributes |
		(.ApproximateNumberOfMessages | tonumber) + (.ApproximateNumberOfMessagesNotVisible | tonumber) +
		(.ApproximateNumberOfMessagesDelayed | tonumber)'
}
waiting() {
	aws sqs get-queue-attributes --queue-url "$1" --attribute-names ApproximateNumberOfMessages \
		--query Attributes.ApproximateNumberOfMessages --output text
}

# order_in MESSAGES: the order in the envelope that a receive printed
order_in() { jq -r '.Messages[0].Body | fromjson | .Message | fromjson | .order' <<<"$1"; }

# receive URL VISIBILITY WAIT
receive() {
	aws sqs receive-message --queue-url "$1" --visibility-timeout "$2" --wait-time-seconds "$3" \
		--attribute-names All --output json
}

# take URL: receives a message, deletes it and prints its order
take() {
	local got
	got=$(receive "$1" 30 20)
	[ -n "$got" ] || return 1
	aws sqs delete-message --queue-url "$1" --receipt-handle "$(jq -r '.Messages[0].ReceiptHandle' <<<"$got")"
	order_in "$got"
}

# publish ORDER STATUS: prints the message id
publish() {
	aws sns publish --topic-arn "$topic" --message "{\"order\":\"$1\",\"status\":\"$2\"}" \
		--message-attributes "{\"order-status\":{\"DataType\":\"String\",\"StringValue\":\"$2\"}}" \
		--query MessageId --output text
}

step 'Start the server and billing, which is out of order'
go build -o "$work/godwit" ./cmd/godwit
go build -o "$work/billing" ./examples/rental-orders/billing
start_godwit
"$work/billing" -listen "$billing" >"$work/billing.log" 2>&1 &
billing_pid=$!
await 'billing answers' 0 tries none

step 'Create the topic, the queues and the subscriptions'
fulfilment_dlq=$(make_queue Rental-Fulfilment-DLQ)
fanout_dlq=$(make_queue Rental-Fulfilment-Fanout-DLQ)
billing_dlq=$(make_queue Rental-Billing-Fanout-DLQ)
fulfilment=$(make_queue Rental-Fulfilment "$(jq -nc --arg arn "$(arn_of "$fulfilment_dlq")" \
	'{RedrivePolicy: ({deadLetterTargetArn: $arn, maxReceiveCount: 3} | tojson)}')")
topic=$(aws sns create-topic --name Rental-Orders --query TopicArn --output text)
filter='{"order-status":["confirmed","canceled"]}'
retries='{"healthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":4,"numRetries":5,"numNoDelayRetries":1,"numMinDelayRetries":1,"numMaxDelayRetries":1,"backoffFunction":"linear"}}'
to_fulfilment=$(aws sns subscribe --topic-arn "$topic" --protocol sqs --notification-endpoint "$(arn_of "$fulfilment")" \
	--attributes "$(jq -nc --arg filter "$filter" --arg dlq "$(arn_of "$fanout_dlq")" \
		'{FilterPolicy: $filter, RedrivePolicy: ({deadLetterTargetArn: $dlq} | tojson)}')" \
	--return-subscription-arn --query SubscriptionArn --output text)
to_billing=$(aws sns subscribe --topic-arn "$topic" --protocol http --notification-endpoint "http://$billing/orders" \
	--attributes "$(jq -nc --arg filter "$filter" --arg retries "$retries" --arg dlq "$(arn_of "$billing_dlq")" \
		'{FilterPolicy: $filter, DeliveryPolicy: $retries, RedrivePolicy: ({deadLetterTargetArn: $dlq} | tojson)}')" \
	--return-subscription-arn --query SubscriptionArn --output text)
await 'billing has not yet to confirm' false aws sns get-subscription-attributes --subscription-arn "$to_billing" \
	--query Attributes.PendingConfirmation --output text

step 'Matching orders arrive, a filtered one arrives nowhere; billing is down for a while'
# Both at once: the CLI takes its time, and the retries of the first do not wait.
publish R-1 confirmed >"$work/r1" &
publish_pid=$!
r2=$(publish R-2 canceled)
wait "$publish_pid"
r1=$(cat "$work/r1")
# Retries come at once, and after 1, 1, 4 and 4 seconds.
tried_thrice() { [ "$(tries R-1)" -ge 3 ] && [ "$(tries R-2)" -ge 3 ] && echo yes; }
await 'both are tried three times' yes tried_thrice
set_billing 200
delivered() { state "$1" "$2" | cut -d' ' -f1; }
await 'R-1 at billing' delivered delivered "$to_billing" "$r1"
await 'R-2 at billing' delivered delivered "$to_billing" "$r2"
for order in R-1 R-2; do
	case $(answers "$order") in
	'503 503 503 200' | '503 503 503 503 200' | '503 503 503 503 503 200') echo "ok billing answered $order: $(answers "$order")" ;;
	*) check "billing answered $order" "$(answers "$order")" '503 503 503 … 200' ;;
	esac
done
r3=$(publish R-3 quoted)
check 'orders for fulfilment' "$(for _ in 1 2; do take "$fulfilment"; done | sort | xargs)" 'R-1 R-2'
check 'left in Rental-Fulfilment' "$(count "$fulfilment")" 0
check 'R-3 was tried at billing' "$(tries R-3)" 0
check 'deliveries of R-3' "$(deliveries "$to_fulfilment" "$r3") $(deliveries "$to_billing" "$r3")" '[] []'

step 'An order exhausts the policy of billing'
set_billing 503
r4=$(publish R-4 confirmed)
check 'in Rental-Billing-Fanout-DLQ' "$(take "$billing_dlq")" R-4
check 'billing answered R-4' "$(answers R-4)" '503 503 503 503 503 503'
await 'R-4' 'dead-letter after 6' state "$to_billing" "$r4"
check 'for fulfilment' "$(take "$fulfilment")" R-4
set_billing 200

step 'A consumer fails three times'
r5=$(publish R-5 confirmed)
for i in 1 2 3; do
	check "receive $i" "$(order_in "$(receive "$fulfilment" 1 20)")" R-5
done
gone() { [ -z "$(receive "$fulfilment" 1 0)" ] && waiting "$fulfilment_dlq"; }
await 'no fourth receive, but in Rental-Fulfilment-DLQ' 1 gone
check 'in Rental-Fulfilment-DLQ' "$(take "$fulfilment_dlq")" R-5
check 'left in Rental-Fulfilment' "$(count "$fulfilment")" 0
await 'R-5 at billing' 'delivered after 1' state "$to_billing" "$r5"

step 'kill -9 in the middle of a schedule'
set_billing 503
r6=$(publish R-6 confirmed)
await 'R-6' 'pending after 4' state "$to_billing" "$r6"
before=$(deliveries "$to_billing" "$r6")
kill -9 "$godwit_pid"
wait "$godwit_pid" 2>/dev/null || true
start_godwit
check 'its delivery after the restart, as before' "$(deliveries "$to_billing" "$r6")" "$before"
set_billing 200
await 'R-6' 'delivered after 5' state "$to_billing" "$r6"
check 'billing answered R-6' "$(answers R-6)" '503 503 503 503 200'
# The fifth attempt was due at nextAttemptAt.
punctual=$(curl -fsS "http://$billing/arrivals/R-6" | jq --argjson d "$before" '
	def seconds: capture("^(?<s>[^.Z]+)(?<f>\\.[0-9]+)?Z$") | ("\(.s)Z" | fromdate) + ("0\(.f // "")" | tonumber);
	(.[4].at | seconds) - ($d[0].nextAttemptAt | seconds) | . > -0.01 and . < 3')
check 'the attempt after the restart came at its time' "$punctual" true
check 'for fulfilment' "$(take "$fulfilment")" R-6
check 'left in Rental-Fulfilment' "$(count "$fulfilment")" 0

step 'Rental-Fulfilment is deleted'
aws sqs delete-queue --queue-url "$fulfilment"
r7=$(publish R-7 confirmed)
check 'in Rental-Fulfilment-Fanout-DLQ' "$(take "$fanout_dlq")" R-7
await 'R-7' 'dead-letter after 1' state "$to_fulfilment" "$r7"
await 'R-7 at billing' 'delivered after 1' state "$to_billing" "$r7"

step 'Nothing is anywhere else'
for queue in "$fulfilment_dlq" "$fanout_dlq" "$billing_dlq"; do
	check "left in ${queue##*/}" "$(count "$queue")" 0
done
check 'R-3 was tried at billing' "$(tries R-3)" 0
printf '\nAll is as it should be.\n'
