package lambda

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/layers"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/bundle"
)

// useLayers finds the layers in a request, if it has the member, for apply. A deletion leaves them their
// content until release is called. Errors: InvalidParameter, AccessDenied.
func (s *Service) useLayers(ctx context.Context, call *api.Call, names []string, set *configuring) (release func(), err error) {
	if names == nil {
		return func() {}, nil
	}
	found, release, err := s.layers.Use(ctx, call, names)
	if err != nil {
		return nil, err
	}
	set.layers = &found
	return release, nil
}

// unzipped is the unpacked size of a function's code that is to get layers, if its record does not have it.
func (s *Service) unzipped(ctx context.Context, fn arn.ARN, names []string) (int64, error) {
	if len(names) == 0 {
		return 0, nil
	}
	info, err := s.engine.FunctionInfo(ctx, fn, "")
	if err != nil || info.Code.Unzipped != 0 || info.Code.Upload == 0 {
		return 0, err
	}
	zip, err := s.engine.FunctionUpload(ctx, fn, info.Code.Upload)
	if err != nil {
		return 0, err
	}
	return bundle.Check(zip)
}

// layerContent reads the content of a layer in a request.
func (s *Service) layerContent(ctx context.Context, in *layers.LayerVersionContentInput) ([]byte, function.Code, error) {
	source := codeSource{zip: in.ZipFile, bucket: in.S3Bucket, key: in.S3Key, version: in.S3ObjectVersion}
	if err := source.fetch(ctx, s.Objects); err != nil {
		return nil, function.Code{}, err
	}
	code, err := source.read(packageZip)
	return source.zip, code, err
}
