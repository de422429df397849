package functions

import (
	"context"
	"maps"
	"strings"

	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/server/deploying/step"
)

// createLayer publishes a version of the layer that the template names, or of one of its own.
func createLayer(ctx context.Context, w *step.Work) (step.Made, error) {
	in, settings := &layers.PublishLayerVersionInput{}, maps.Clone(w.Target.Properties)
	name := w.Target.Physical
	if given := step.Text(settings["LayerName"]); given != "" {
		name = given
	}
	if err := step.Fill(settings, in); err != nil {
		return step.Made{}, err
	}
	in.LayerName = name
	out, err := step.AskOnce[layers.LayerVersion](ctx, w, "lambda", "PublishLayerVersion", in)
	if err != nil {
		return step.Made{}, err
	}
	return step.Made{Physical: out.LayerVersionArn, Attributes: map[string]any{"LayerVersionArn": out.LayerVersionArn}}, nil
}

// numbered is the layer and the number of a version; false if a text is not the ARN of one. A layer of the
// stack's own account and region has its name alone, as the operations do not take the ARN of a long one.
func numbered(w *step.Work, version string) (layer string, number int, ok bool) {
	a, err := arn.Parse(version)
	if err != nil {
		return "", 0, false
	}
	name, n, ok := a.SplitLayer()
	if layer = name.String(); name.Account == w.Account && name.Region == w.Region {
		layer = name.LayerName()
	}
	return layer, int(n), ok && n > 0 //nolint:gosec // it counts up from 1
}

func deleteLayer(ctx context.Context, w *step.Work) error {
	name, number, ok := numbered(w, w.Target.Physical)
	if !ok {
		return nil // it was never made
	}
	_, err := step.Ask[layers.Empty](ctx, w, "lambda", "DeleteLayerVersion", w.Region, &layers.LayerVersionInput{LayerName: name, VersionNumber: number})
	return step.UnlessGone(err)
}

// createLayerPermission adds a statement, which is named behind the version's ARN.
func createLayerPermission(ctx context.Context, w *step.Work) (step.Made, error) {
	in, settings := &layers.AddLayerVersionPermissionInput{}, maps.Clone(w.Target.Properties)
	version := step.Text(settings["LayerVersionArn"])
	delete(settings, "LayerVersionArn")
	name, number, ok := numbered(w, version)
	if !ok {
		return step.Made{}, &step.Error{Text: "LayerVersionArn is not the ARN of a version of a layer", Code: "InvalidRequest"}
	}
	if err := step.Fill(settings, in); err != nil {
		return step.Made{}, err
	}
	in.LayerName, in.VersionNumber, in.StatementId = name, number, w.Target.Physical
	_, err := step.Ask[layers.AddLayerVersionPermissionOutput](ctx, w, "lambda", "AddLayerVersionPermission", w.Region, in)
	if err != nil && (!w.Again || !step.Exists(err)) { // nobody else has that name
		return step.Made{}, err
	}
	id := version + "#" + in.StatementId
	return step.Made{Physical: id, Attributes: map[string]any{"Id": id}}, nil
}

func deleteLayerPermission(ctx context.Context, w *step.Work) error {
	version, sid, _ := strings.Cut(w.Target.Physical, "#")
	name, number, ok := numbered(w, version)
	if !ok {
		return nil // it was never made
	}
	_, err := step.Ask[layers.Empty](ctx, w, "lambda", "RemoveLayerVersionPermission", w.Region, &layers.RemoveLayerVersionPermissionInput{
		LayerName: name, VersionNumber: number, StatementId: sid,
	})
	return step.UnlessGone(err)
}
