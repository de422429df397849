package sdk_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/test/checklist"
)

// TestMain notes everything that the tests are answered, and then holds it
// against the services' models. A run of some tests only is not held to that;
// with -checklist it says what it lacks.
func TestMain(m *testing.M) {
	show := flag.Bool("checklist", false, "say what the tests did not see of the services' models, whichever were run")
	flag.Parse()
	models := make(map[string]checklist.Model)
	for _, service := range []string{"cloudformation", "cloudwatch", "firehose", "iam", "kms", "lambda", "logs", "sns", "sqs", "sts"} {
		model, err := checklist.Load(service)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		models[service] = model
	}
	recorder := checklist.NewRecorder(http.DefaultTransport, slices.Collect(maps.Values(models))...)
	http.DefaultTransport = signing{recorder}    // both the SDK's clients and http.DefaultClient use it
	http.DefaultClient.Timeout = 5 * time.Minute // what is never answered fails its own test
	code := m.Run()
	for _, line := range recorder.Wrong() {
		fmt.Println("checklist: not as AWS's model says:", line)
		code = 1
	}
	optional, err := checklist.Optionals()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	missing, useless := checklist.Missing(recorder.Absent(), optional)
	for _, line := range missing {
		fmt.Println("checklist:", line)
		code = 1
	}
	if *show {
		for _, path := range recorder.Unanswered() {
			fmt.Println("checklist: no answer has", path)
		}
	}
	if code == 0 && (*show || wholeRun()) {
		for _, line := range useless {
			fmt.Println("checklist:", line)
			code = 1
		}
		for service, protocols := range map[string][]string{
			"cloudwatch": {checklist.SDK, checklist.JSON, checklist.Query},
			"firehose":   {checklist.SDK},
			"lambda":     {checklist.SDK},
			"logs":       {checklist.SDK},
			"sns":        {checklist.SDK},
			"sqs":        {checklist.SDK, checklist.Query},
		} {
			exemptions, err := checklist.Exemptions(service)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(2)
			}
			for _, line := range checklist.Check(models[service], exemptions, protocols, recorder.Seen) {
				fmt.Println("checklist:", line)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// wholeRun reports whether all tests were run.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if flag.Lookup(name).Value.String() != "" {
			return false
		}
	}
	return true
}
