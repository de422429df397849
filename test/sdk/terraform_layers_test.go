package sdk_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// layer is an aws_lambda_layer_version: a change of it deletes the version, and makes the next one.
func (s *stack) layer() resource {
	name, version := aws.String("tools"), int64(0)
	want := func(version, description string, code []byte) fields {
		return fields{
			"arn": layerARN("tools") + ":" + version, "layer": layerARN("tools"), "version": version, "description": description, "license": "MIT",
			"runtime": "provided.al2023", "architecture": "x86_64", "hash": *digest(code), "size": strconv.Itoa(len(code)),
		}
	}
	publish := func(t *testing.T, description string, code []byte) {
		t.Helper()
		version = must(s.lambda.PublishLayerVersion(t.Context(), &lambda.PublishLayerVersionInput{
			LayerName: name, Content: &lambdatypes.LayerVersionContentInput{ZipFile: code}, Description: &description, LicenseInfo: aws.String("MIT"),
			CompatibleRuntimes: []lambdatypes.Runtime{lambdatypes.RuntimeProvidedal2023}, CompatibleArchitectures: []lambdatypes.Architecture{lambdatypes.ArchitectureX8664},
		}))(t).Version
	}
	destroy := func(t *testing.T) {
		t.Helper()
		must(s.lambda.DeleteLayerVersion(t.Context(), &lambda.DeleteLayerVersionInput{LayerName: name, VersionNumber: &version}))(t)
		_, err := s.lambda.GetLayerVersion(t.Context(), &lambda.GetLayerVersionInput{LayerName: name, VersionNumber: &version})
		gone(t, err, "ResourceNotFoundException")
	}
	return resource{
		name: "layer version", want: [2]fields{want("1", "tools", s.code[0]), want("2", "more tools", s.code[1])},
		create: func(t *testing.T) { publish(t, "tools", s.code[0]) },
		read: func(t *testing.T) fields {
			out := must(s.lambda.GetLayerVersion(t.Context(), &lambda.GetLayerVersionInput{LayerName: name, VersionNumber: &version}))(t)
			return fields{
				"arn": *out.LayerVersionArn, "layer": *out.LayerArn, "version": strconv.FormatInt(out.Version, 10), "description": *out.Description, "license": *out.LicenseInfo,
				"runtime": string(out.CompatibleRuntimes[0]), "architecture": string(out.CompatibleArchitectures[0]), "hash": *out.Content.CodeSha256,
				"size": strconv.FormatInt(out.Content.CodeSize, 10),
			}
		},
		change: func(t *testing.T) {
			destroy(t)
			publish(t, "more tools", s.code[1])
		},
		destroy: destroy,
	}
}

// layerPermission is an aws_lambda_layer_version_permission, of a layer of its own. A change of it removes the
// statement, and adds another one.
func (s *stack) layerPermission() resource {
	name, version, sid := aws.String("shared"), aws.Int64(1), aws.String("account")
	policy := &lambda.GetLayerVersionPolicyInput{LayerName: name, VersionNumber: version}
	want := func(principal string) fields {
		return fields{"policy": `{"Version":"2012-10-17","Id":"default","Statement":[{"Sid":"account","Effect":"Allow","Principal":` + principal +
			`,"Action":"lambda:GetLayerVersion","Resource":"` + layerARN("shared") + `:1"}]}`}
	}
	permit := func(t *testing.T, principal string) {
		t.Helper()
		must(s.lambda.AddLayerVersionPermission(t.Context(), &lambda.AddLayerVersionPermissionInput{
			LayerName: name, VersionNumber: version, StatementId: sid, Action: aws.String("lambda:GetLayerVersion"), Principal: &principal,
		}))(t)
	}
	forbid := func(t *testing.T) {
		t.Helper()
		must(s.lambda.RemoveLayerVersionPermission(t.Context(), &lambda.RemoveLayerVersionPermissionInput{LayerName: name, VersionNumber: version, StatementId: sid}))(t)
		_, err := s.lambda.GetLayerVersionPolicy(t.Context(), policy)
		gone(t, err, "ResourceNotFoundException")
	}
	return resource{
		name: "layer version permission", want: [2]fields{want(`{"AWS":"arn:aws:iam::111111111111:root"}`), want(`"*"`)},
		create: func(t *testing.T) {
			publishLayer(t, s.lambda, *name, "a", "x")
			permit(t, "111111111111")
		},
		read: func(t *testing.T) fields {
			return fields{"policy": *must(s.lambda.GetLayerVersionPolicy(t.Context(), policy))(t).Policy}
		},
		change: func(t *testing.T) {
			forbid(t)
			permit(t, "*")
		},
		destroy: forbid,
	}
}
