terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

variable "endpoint" { type = string }
variable "access_key" { type = string }
variable "secret_key" { type = string }

# changed is false at first; with true whatever can be changed in place is.
variable "changed" {
  type    = bool
  default = false
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = var.access_key
  secret_key                  = var.secret_key
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  skip_region_validation      = true

  endpoints {
    firehose = var.endpoint
    iam      = var.endpoint
    logs     = var.endpoint
    sns      = var.endpoint
  }

  default_tags { tags = { project = "rental" } }
}

resource "aws_iam_role" "hose" {
  name = "hose"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = ["firehose.amazonaws.com", "sns.amazonaws.com"] }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "put" {
  role = aws_iam_role.hose.name
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = ["firehose:PutRecord", "firehose:PutRecordBatch"], Resource = "*" }]
  })
}

resource "aws_cloudwatch_log_group" "hoses" { name = "/aws/kinesisfirehose/orders" }

resource "aws_cloudwatch_log_stream" "orders" {
  name           = "DestinationDelivery"
  log_group_name = aws_cloudwatch_log_group.hoses.name
}

resource "aws_kinesis_firehose_delivery_stream" "plain" {
  name        = "plain"
  destination = "extended_s3"

  extended_s3_configuration {
    role_arn   = aws_iam_role.hose.arn
    bucket_arn = "arn:aws:s3:::lake"
  }
}

resource "aws_kinesis_firehose_delivery_stream" "orders" {
  name        = "orders"
  destination = "extended_s3"

  extended_s3_configuration {
    role_arn            = aws_iam_role.hose.arn
    bucket_arn          = var.changed ? "arn:aws:s3:::ocean" : "arn:aws:s3:::lake"
    prefix              = "in/!{timestamp:yyyy}/${var.changed ? "b" : "a"}/"
    error_output_prefix = "err/!{firehose:error-output-type}/"
    buffering_size      = var.changed ? 64 : 5
    buffering_interval  = var.changed ? 0 : 60
    compression_format  = var.changed ? "UNCOMPRESSED" : "GZIP"
    custom_time_zone    = var.changed ? "UTC" : "Asia/Tokyo"
    file_extension      = var.changed ? ".json" : ".json.gz"

    cloudwatch_logging_options {
      enabled         = !var.changed
      log_group_name  = var.changed ? null : aws_cloudwatch_log_group.hoses.name
      log_stream_name = var.changed ? null : aws_cloudwatch_log_stream.orders.name
    }

    dynamic_partitioning_configuration {
      enabled        = false
      retry_duration = var.changed ? 60 : 300
    }

    processing_configuration {
      enabled = true
      processors {
        type = "AppendDelimiterToRecord"
        dynamic "parameters" {
          for_each = var.changed ? ["\\n"] : []
          content {
            parameter_name  = "Delimiter"
            parameter_value = parameters.value
          }
        }
      }
    }
  }

  server_side_encryption { enabled = !var.changed }

  tags = var.changed ? { team = "b", more = "" } : { team = "a" }
}

# Of a stream nothing but its tags changes, of the other nothing but its encryption.
resource "aws_kinesis_firehose_delivery_stream" "tagged" {
  name        = "tagged"
  destination = "extended_s3"
  extended_s3_configuration {
    role_arn   = aws_iam_role.hose.arn
    bucket_arn = "arn:aws:s3:::lake"
    processing_configuration { enabled = false }
  }
  tags = { team = var.changed ? "b" : "a" }
}

resource "aws_kinesis_firehose_delivery_stream" "sealed" {
  name        = "sealed"
  destination = "extended_s3"
  extended_s3_configuration {
    role_arn           = aws_iam_role.hose.arn
    bucket_arn         = "arn:aws:s3:::lake"
    compression_format = "GZIP"
  }
  server_side_encryption {
    enabled  = var.changed
    key_type = "AWS_OWNED_CMK"
  }
}

resource "aws_kinesis_firehose_delivery_stream" "web" {
  name        = "web"
  destination = "http_endpoint"

  http_endpoint_configuration {
    url                = var.changed ? "https://example.com/b" : "https://example.com/a"
    name               = "logs"
    access_key         = var.changed ? "another" : "s3cr3t"
    buffering_size     = var.changed ? 15 : 1
    buffering_interval = var.changed ? 60 : 1
    role_arn           = aws_iam_role.hose.arn
    retry_duration     = var.changed ? 0 : 60
    s3_backup_mode     = var.changed ? "AllData" : "FailedDataOnly"

    request_configuration {
      content_encoding = var.changed ? "NONE" : "GZIP"
      common_attributes {
        name  = "stage"
        value = var.changed ? "live" : "test"
      }
      dynamic "common_attributes" {
        for_each = var.changed ? [] : ["eu"]
        content {
          name  = "place"
          value = common_attributes.value
        }
      }
    }

    cloudwatch_logging_options {
      enabled         = true
      log_group_name  = aws_cloudwatch_log_group.hoses.name
      log_stream_name = var.changed ? "web" : "other"
    }

    s3_configuration {
      role_arn            = aws_iam_role.hose.arn
      bucket_arn          = "arn:aws:s3:::backup"
      prefix              = var.changed ? "web/" : null
      error_output_prefix = "err/"
      buffering_size      = 10
      buffering_interval  = 400
      compression_format  = var.changed ? "UNCOMPRESSED" : "GZIP"
    }
  }
}

resource "aws_kinesis_firehose_delivery_stream" "small" {
  name        = "small"
  destination = "http_endpoint"
  http_endpoint_configuration {
    name     = "small"
    url      = "https://example.com/"
    role_arn = aws_iam_role.hose.arn
    s3_configuration {
      role_arn   = aws_iam_role.hose.arn
      bucket_arn = "arn:aws:s3:::backup"
    }
  }
}

resource "aws_sns_topic" "orders" { name = "orders" }

resource "aws_sns_topic_subscription" "hose" {
  topic_arn             = aws_sns_topic.orders.arn
  protocol              = "firehose"
  endpoint              = aws_kinesis_firehose_delivery_stream.orders.arn
  subscription_role_arn = aws_iam_role.hose.arn
  raw_message_delivery  = var.changed
}

data "aws_kinesis_firehose_delivery_stream" "orders" {
  name = aws_kinesis_firehose_delivery_stream.orders.name
}

output "stream" { value = data.aws_kinesis_firehose_delivery_stream.orders.arn }
