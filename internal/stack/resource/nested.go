package resource

var nestedTypes = []Type{{
	Name: "AWS::CloudFormation::Stack", MaxName: 128, Tags: "Tags", Attributes: []string{"Outputs.*"},
	Properties: map[string]Property{
		"NotificationARNs": prop(Strings), "Parameters": prop(Object), "Tags": prop(List), "TemplateURL": prop(String, required), "TimeoutInMinutes": prop(Integer),
	},
}}
