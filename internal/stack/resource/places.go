package resource

var ownTypes = []Type{
	{
		Name: "Godwit::Ingest::Source", NameProperty: "Name", MaxName: 64, Attributes: []string{"Owner", "Path"},
		Properties: map[string]Property{
			"Limits": prop(Object), "Mapping": prop(Object), "Name": prop(String, replaces), "Paused": prop(Boolean), "Secrets": prop(Strings),
			"Target": prop(String, required), "Verification": prop(Object, required),
		},
	},
}

var streamTypes = []Type{
	{
		Name: "AWS::KinesisFirehose::DeliveryStream", NameProperty: "DeliveryStreamName", MaxName: 64, Tags: "Tags", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"DeliveryStreamEncryptionConfigurationInput": prop(Object), "DeliveryStreamName": prop(String, replaces), "DeliveryStreamType": prop(String, replaces),
			"DirectPutSourceConfiguration": prop(Object), "ExtendedS3DestinationConfiguration": prop(Object), "HttpEndpointDestinationConfiguration": prop(Object),
			"S3DestinationConfiguration": prop(Object), "Tags": prop(List),
		},
	},
}

// Types that exist only in the stack.
var placeTypes = []Type{
	{
		Name: "AWS::SSM::Parameter", NameProperty: "Name", MaxName: 1011, Attributes: []string{"Type", "Value"},
		Properties: map[string]Property{
			"AllowedPattern": prop(String), "DataType": prop(String), "Description": prop(String), "Name": prop(String, replaces), "Tier": prop(String),
			"Type": prop(String, required), "Value": prop(String, required),
		},
	},
	{Name: "AWS::CloudFormation::WaitConditionHandle"},
}
