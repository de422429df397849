package request

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function/layer"
)

// GetLayerVersion is the action that the policy of a version of a layer can allow.
const GetLayerVersion = "lambda:GetLayerVersion"

// maxLayerName bounds a layer's name or ARN, in characters.
const maxLayerName = 140

var (
	layerPattern        = Compile(`(arn:[a-zA-Z0-9-]+:lambda:[a-zA-Z0-9-]+:\d{12}:layer:[a-zA-Z0-9-_]+)|[a-zA-Z0-9-_]+`)
	layerVersionPattern = Compile(`arn:[a-zA-Z0-9-]+:lambda:[a-zA-Z0-9-]+:\d{12}:layer:[a-zA-Z0-9-_]+:[0-9]+`)
	// listedPattern is AWS's of the layers of a function; its own layers (awslayer) are not here.
	listedPattern = Compile(`(arn:(aws[a-zA-Z-]*)?:lambda:(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d{1}:\d{12}:layer:[a-zA-Z0-9-_]+:[0-9]+)|` +
		`(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+)`)
)

// CheckLayer validates the name or ARN of a layer in a request.
func CheckLayer(c *Constraints, text string) {
	c.Length("layerName", &text, 1, maxLayerName)
	c.Pattern("layerName", &text, layerPattern)
}

// Layer is the layer that a request names. It fails with ValidationFailed, and with ResourceNotFound for one
// of another region.
func Layer(call *api.Call, text string) (arn.ARN, error) {
	var c Constraints
	if CheckLayer(&c, text); c.Err() != nil {
		return arn.ARN{}, c.Err()
	}
	a, err := arn.Parse(text)
	if err != nil { // a name alone
		return arn.Layer(call.Region, call.Account, text), nil
	}
	if a.Region != call.Region {
		return arn.ARN{}, layer.ErrNotFound
	}
	return a, nil
}

// LayerVersion is the version of a layer that a request names by its number. It fails with ValidationFailed,
// InvalidParameter and ResourceNotFound.
func LayerVersion(call *api.Call, text string, number int) (arn.ARN, error) {
	a, err := Layer(call, text)
	if err != nil {
		return arn.ARN{}, err
	}
	if number < 1 {
		return arn.ARN{}, Invalid("Layer Version Cannot be less than 1")
	}
	return a.LayerVersion(uint64(number)), nil
}

// LayerVersionARN is the version of a layer that a request names by its ARN. It fails with ValidationFailed,
// InvalidParameter and ResourceNotFound.
func LayerVersionARN(call *api.Call, text string) (arn.ARN, error) {
	var c Constraints
	c.Length("arn", &text, 1, maxLayerName)
	c.Pattern("arn", &text, layerVersionPattern)
	if err := c.Err(); err != nil {
		return arn.ARN{}, err
	}
	a, err := arn.Parse(text)
	if err != nil {
		return arn.ARN{}, err
	}
	switch _, _, ok := a.SplitLayer(); {
	case !ok:
		return arn.ARN{}, Invalid("Layer Version Cannot be less than 1")
	case a.Region != call.Region:
		return arn.ARN{}, layer.ErrNotFound
	}
	return a, nil
}

// CheckLayers validates the layers of a function in a request.
func CheckLayers(c *Constraints, layers []string) {
	for _, text := range layers {
		if len(text) > 2048 || !listedPattern.MatchString(text) {
			c.Add("layers", "["+text+"]", "Member must satisfy constraint: [Member must have length less than or equal to 2048, "+
				"Member must have length greater than or equal to 1, Member must satisfy regular expression pattern: %s, Member must not be null]", listedPattern.Text)
			return
		}
	}
}

// Layers are the versions of layers that a request gives to a function. It fails with InvalidParameter.
func Layers(call *api.Call, layers []string) ([]arn.ARN, error) {
	if len(layers) > layer.MaxLayers {
		return nil, Invalid("Cannot reference more than %d layers.", layer.MaxLayers)
	}
	all := make([]arn.ARN, 0, len(layers))
	names := map[arn.ARN]string{}
	for _, text := range layers {
		a, err := arn.Parse(text)
		if err != nil {
			return nil, err
		}
		name, number, ok := a.SplitLayer()
		switch {
		case !ok || number == 0:
			return nil, Invalid("Layer version %s does not exist.", Shorten(text))
		case a.Region != call.Region:
			return nil, Invalid("Layers are not in the same region as the function. Layers are expected to be in region %s.", call.Region)
		}
		if before, twice := names[name]; twice {
			return nil, Invalid("Two different versions of the same layer are not allowed to be referenced in the same function. "+
				"%s and %s are versions of the same layer.", before, text)
		}
		names[name] = text
		all = append(all, a)
	}
	return all, nil
}
