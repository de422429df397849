// Command generate makes the models of package checklist: it takes the names
// of actions and of their errors out of AWS's service models, which AWS
// publishes with its SDKs (service-2.json, protocols 2.0), and writes them to
// testdata. Run it in the package's directory:
//
//	go run ./generate -models DIRECTORY
//
// The directory holds a file for each service, such as sns.json.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/test/checklist"
)

// model is a service model, as far as it is needed.
type model struct {
	Metadata struct {
		APIVersion   string `json:"apiVersion"`
		Protocol     string `json:"protocol"`
		TargetPrefix string `json:"targetPrefix"`
	} `json:"metadata"`
	Operations map[string]struct {
		HTTP struct {
			Method     string `json:"method"`
			RequestURI string `json:"requestUri"`
		} `json:"http"`
		Errors []struct {
			Shape string `json:"shape"`
		} `json:"errors"`
	} `json:"operations"`
	Shapes map[string]struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	} `json:"shapes"`
}

func main() {
	models := flag.String("models", ".", "the directory of the models")
	to := flag.String("to", "testdata", "the directory to write to")
	tables := flag.String("constraints", "../../internal/api/constraints", "the directory to write constraints of requests to")
	flag.Parse()
	for _, service := range []string{"cloudformation", "cloudwatch", "firehose", "iam", "kms", "lambda", "logs", "sns", "sqs", "sts"} {
		if err := generate(service, *models, *to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	for _, service := range constrained {
		if err := generateConstraints(service, *models, *tables); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	for _, service := range walked {
		if err := generateShapes(service, *models, *to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// queryCodes are codes of SQS in Query that are not the name with a prefix;
// its model says JSON's names only.
var queryCodes = map[string]string{
	"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
	"QueueNameExists":   "QueueAlreadyExists",

	"KmsAccessDenied":    "KMS.AccessDeniedException",
	"KmsDisabled":        "KMS.DisabledException",
	"KmsInvalidKeyUsage": "KMS.InvalidKeyUsageException",
	"KmsInvalidState":    "KMS.InvalidStateException",
	"KmsNotFound":        "KMS.NotFoundException",
	"KmsOptInRequired":   "KMS.OptInRequired",
	"KmsThrottled":       "KMS.ThrottlingException",
}

func generate(service, from, to string) error {
	document, err := os.ReadFile(filepath.Join(from, service+".json"))
	if err != nil {
		return err
	}
	var in model
	if err := json.Unmarshal(document, &in); err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	out := checklist.Model{Service: service, Version: in.Metadata.APIVersion, Target: in.Metadata.TargetPrefix, Actions: map[string][]string{}, Codes: map[string]string{}}
	for action, operation := range in.Operations {
		if in.Metadata.Protocol == "rest-json" {
			if out.Routes == nil {
				out.Routes = map[string]string{}
			}
			out.Routes[action] = operation.HTTP.Method + " " + operation.HTTP.RequestURI
		}
		names := make([]string, 0, len(operation.Errors))
		for _, e := range operation.Errors {
			names = append(names, e.Shape)
			if code := in.Shapes[e.Shape].Error.Code; code != "" && code != e.Shape {
				out.Codes[e.Shape] = code
			}
			if code := queryCodes[e.Shape]; code != "" && service == "sqs" {
				out.Codes[e.Shape] = code
			}
		}
		slices.Sort(names)
		out.Actions[action] = names
	}
	written, err := format(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, service+".json"), written, 0o644)
}

// format writes an action a line, in order, so that a new model is easy to
// compare with the last.
func format(m checklist.Model) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n\"Service\": %q,\n\"Version\": %q,\n\"Target\": %q,\n\"Actions\": {", m.Service, m.Version, m.Target)
	separator := "\n"
	for _, action := range slices.Sorted(maps.Keys(m.Actions)) {
		errors, err := json.Marshal(m.Actions[action])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s %q: %s", separator, action, errors)
		separator = ",\n"
	}
	codes, err := json.MarshalIndent(m.Codes, "", " ") // in order: maps are written so
	if err != nil {
		return nil, err
	}
	b.WriteString("\n},")
	if m.Routes != nil {
		routes, err := json.MarshalIndent(m.Routes, "", " ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n\"Routes\": %s,", routes)
	}
	fmt.Fprintf(&b, "\n\"Codes\": %s\n}\n", codes)
	return b.Bytes(), nil
}
