terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

variable "endpoint" { type = string }

# changed is false at first; with true whatever can be changed in place is.
variable "changed" {
  type    = bool
  default = false
}

provider "aws" {
  region                      = "us-east-1"
  access_key                  = "test"
  secret_key                  = "test"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
  skip_region_validation      = true

  endpoints {
    cloudformation = var.endpoint
    sqs            = var.endpoint
  }

  default_tags { tags = { project = "rental" } }
}

resource "aws_cloudformation_stack" "orders" {
  name               = "orders"
  on_failure         = "ROLLBACK"
  timeout_in_minutes = 10
  parameters         = { Delay = var.changed ? "5" : "0" }
  policy_body        = jsonencode({ Statement = [{ Effect = "Allow", Principal = "*", Action = "Update:*", Resource = "*" }] })

  template_body = jsonencode({
    Parameters = { Delay = { Type = "Number" } }
    Resources = {
      Orders = { Type = "AWS::SQS::Queue", Properties = { DelaySeconds = { Ref = "Delay" } } }
      Events = { Type = "AWS::SNS::Topic", Properties = { DisplayName = var.changed ? "Orders" : "orders" } }
    }
    Outputs = { Queue = { Value = { Ref = "Orders" } } }
  })
}

# The queue that the stack has made, by its output.
resource "aws_sqs_queue_redrive_allow_policy" "orders" {
  queue_url            = aws_cloudformation_stack.orders.outputs["Queue"]
  redrive_allow_policy = jsonencode({ redrivePermission = "denyAll" })
}
