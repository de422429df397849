package sdk_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

func layerARN(name string) string { return "arn:aws:lambda:us-east-1:000000000000:layer:" + name }

// publishLayer makes a version of a layer of files: pairs of name and content.
func publishLayer(t *testing.T, c *lambda.Client, name string, files ...string) *lambda.PublishLayerVersionOutput {
	t.Helper()
	return must(c.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
		LayerName: &name, Content: &types.LayerVersionContentInput{ZipFile: zipOf(t, files...)},
	}))(t)
}

// shell answers with what a function's shell prints for a command.
func shell(t *testing.T, c *lambda.Client, name, command string) string {
	t.Helper()
	out := invoke(t, c, name, string(must(json.Marshal(map[string]string{"run": command}))(t)))
	var text string
	if err := json.Unmarshal(out.Payload, &text); err != nil {
		t.Fatalf("%s: %v", out.Payload, err)
	}
	return text
}

// A function finds its layers in /opt, a file of a later one in place of an earlier one's, and keeps them when
// their versions are deleted.
func TestLayersOfFunction(t *testing.T) {
	endpoint := start(t)
	c := functionsClient(endpoint)
	first := publishLayer(t, c, "tools", "bin/say", "#!/bin/sh\necho first", "etc/only", "a", "both", "a")
	second := publishLayer(t, c, "more", "etc/more", "b", "both", "b")
	equal(t, "the first version", layerARN("tools")+":1", *first.LayerVersionArn)
	in := functionInput(t, "f")
	in.Code.ZipFile, in.Timeout = must(goProgram())(t), aws.Int32(runTime)
	in.Layers = []string{*first.LayerVersionArn, *second.LayerVersionArn}
	made := must(c.CreateFunction(t.Context(), in))(t)
	want := []types.Layer{
		{Arn: first.LayerVersionArn, CodeSize: first.Content.CodeSize}, {Arn: second.LayerVersionArn, CodeSize: second.Content.CodeSize},
	}
	equal(t, "the function's layers", want, made.Layers)
	equal(t, "its layers later", want, configuration(t, c, "f").Layers)
	const look = `say; cd "$GODWIT_LAYERS"; cat etc/only etc/more both`
	equal(t, "what it sees", "first\nabb", shell(t, c, "f", look))

	got := must(c.GetLayerVersion(t.Context(), &lambda.GetLayerVersionInput{LayerName: aws.String("tools"), VersionNumber: aws.Int64(1)}))(t)
	equal(t, "its content", 200, fetch(t, *got.Content.Location).Status)
}
