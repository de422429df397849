// Package functions takes the steps of Lambda's resources.
package functions

import "godwit.dev/godwit/internal/server/deploying/step"

// Handlers are those of the types of resources.
var Handlers = map[string]step.Handler{
	"AWS::Lambda::Function":               {Create: createFunction, Update: updateFunction, Delete: deleteFunction},
	"AWS::Lambda::Version":                {Create: createVersion, Update: updateVersion, Delete: deleteVersion},
	"AWS::Lambda::Alias":                  {Create: createAlias, Update: updateAlias, Delete: deleteAlias},
	"AWS::Lambda::Permission":             {Create: createPermission, Update: step.Keep, Delete: deletePermission},
	"AWS::Lambda::EventSourceMapping":     {Create: createMapping, Update: updateMapping, Delete: deleteMapping},
	"AWS::Lambda::EventInvokeConfig":      {Create: createEventInvoke, Update: putEventInvoke, Delete: deleteEventInvoke},
	"AWS::Lambda::LayerVersion":           {Create: createLayer, Update: step.Keep, Delete: deleteLayer},
	"AWS::Lambda::LayerVersionPermission": {Create: createLayerPermission, Update: step.Keep, Delete: deleteLayerPermission},
	"AWS::Lambda::Url":                    {Create: createURL, Update: updateURL, Delete: deleteURL},
}
