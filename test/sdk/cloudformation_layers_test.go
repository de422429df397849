package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

const layered = `
Parameters: {Key: {Type: String, Default: one}, Layers: {Type: String, Default: "yes"}}
Conditions: {Layered: !Equals [!Ref Layers, "yes"]}
Resources:
  May:
    Type: AWS::IAM::Role
    Properties: {AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: "sts:AssumeRole"}]}}
  Tools:
    Type: AWS::Lambda::LayerVersion
    Properties: {LayerName: tools, Description: what helps, LicenseInfo: MIT, CompatibleRuntimes: [python3.13], CompatibleArchitectures: [x86_64], Content: {S3Bucket: bucket, S3Key: !Ref Key}}
  Unnamed: {Type: AWS::Lambda::LayerVersion, Properties: {Content: {S3Bucket: bucket, S3Key: !Ref Key}}}
  Theirs: {Type: AWS::Lambda::LayerVersionPermission, Properties: {LayerVersionArn: !Ref Tools, Action: "lambda:GetLayerVersion", Principal: "111122223333"}}
  Uses:
    Type: AWS::Lambda::Function
    Properties:
      Role: !GetAtt May.Arn
      Runtime: python3.13
      Handler: index.handler
      Code: {ZipFile: "def handler(event, context):\n    return 1\n"}
      Layers: !If [Layered, [!Ref Tools, !GetAtt Unnamed.LayerVersionArn], !Ref AWS::NoValue]
Outputs: {Tools: {Value: !Ref Tools}, Unnamed: {Value: !Ref Unnamed}, Theirs: {Value: !Ref Theirs}, Uses: {Value: !Ref Uses}}
`

// A stack's layers are replaced by new versions, which its function gets, and differ from their template where
// somebody has changed them.
func TestStackLayers(t *testing.T) {
	endpoint, a := startArtifacts(t)
	c, functions := cloudformationAs(endpoint, account), functionsClient(endpoint)
	a.put("/bucket/one", string(zipOf(t, "python/a.py", "1")))
	a.put("/bucket/two", string(zipOf(t, "python/a.py", "22")))
	s := deployed(t, c, "layers", layered, "Key", "one")
	out := s.outputs()
	equal(t, "the version", layerARN("tools")+":1", out["Tools"])
	layers := func() (all []string) {
		t.Helper()
		for _, l := range configuration(t, functions, out["Uses"]).Layers {
			all = append(all, *l.Arn)
		}
		return all
	}
	equal(t, "the function's layers", []string{out["Tools"], out["Unnamed"]}, layers())
	first := must(functions.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: new(out["Tools"])}))(t)
	equal(t, "its description and license", "what helps MIT", *first.Description+" "+*first.LicenseInfo)
	equal(t, "drift", types.StackDriftStatusInSync, compared(t, c, "layers").StackDriftStatus)

	s.update(types.StackStatusUpdateComplete, layered, "Key", "two")
	out = s.outputs()
	equal(t, "the version later", layerARN("tools")+":2", out["Tools"])
	equal(t, "the function's layers later", []string{out["Tools"], out["Unnamed"]}, layers())
	_, err := functions.GetLayerVersionByArn(t.Context(), &lambda.GetLayerVersionByArnInput{Arn: new(layerARN("tools") + ":1")})
	refused(t, err, notFound, 404, "The resource you requested does not exist.")

	remove := &lambda.RemoveLayerVersionPermissionInput{LayerName: new("tools"), VersionNumber: new(int64(2)), StatementId: new(out["Theirs"][len(out["Tools"])+1:])}
	must(functions.RemoveLayerVersionPermission(t.Context(), remove))(t)
	must(functions.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{FunctionName: new(out["Uses"]), Layers: []string{out["Tools"]}}))(t)
	name, number := out["Unnamed"][:len(out["Unnamed"])-2], int64(1)
	must(functions.DeleteLayerVersion(t.Context(), &lambda.DeleteLayerVersionInput{LayerName: &name, VersionNumber: &number}))(t)
	compared(t, c, "layers")
	want := []string{"Theirs DELETED", "Unnamed DELETED", "Uses MODIFIED /Layers/1 REMOVE " + out["Unnamed"] + " null"}
	if lines := drifts(t, c, "layers", types.StackResourceDriftStatusModified, types.StackResourceDriftStatusDeleted); !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	s.update(types.StackStatusUpdateComplete, layered, "Key", "two", "Layers", "no")
	equal(t, "the function's layers in the end", 0, len(layers()))
	s.remove()
	equal(t, "layers", 0, len(must(functions.ListLayers(t.Context(), &lambda.ListLayersInput{}))(t).Layers))
	equal(t, "the account's code", int64(0), must(functions.GetAccountSettings(t.Context(), &lambda.GetAccountSettingsInput{}))(t).AccountUsage.TotalCodeSize)
}

// A layer's name may be so long that its ARN is longer than the operations on layers take.
func TestStackLayersOfLongNames(t *testing.T) {
	endpoint, a := startArtifacts(t)
	c, functions := cloudformationAs(endpoint, account), functionsClient(endpoint)
	a.put("/bucket/one", string(zipOf(t, "python/a.py", "1")))
	name := strings.Repeat("n", 140)
	s := deployed(t, c, "long-names", strings.ReplaceAll(layered, "LayerName: tools", "LayerName: "+name), "Key", "one")
	equal(t, "the version", layerARN(name)+":1", s.outputs()["Tools"])
	equal(t, "drift", types.StackDriftStatusInSync, compared(t, c, "long-names").StackDriftStatus)
	s.remove()
	equal(t, "layers", 0, len(must(functions.ListLayers(t.Context(), &lambda.ListLayersInput{}))(t).Layers))
}
