terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

variable "endpoint" { type = string }

variable "access_key" {
  type    = string
  default = "test"
}

variable "secret_key" {
  type    = string
  default = "test"
}

# changed is false at first; with true whatever can be changed in place is.
variable "changed" {
  type    = bool
  default = false
}

# Credentials are validated and the account is asked for, by STS and then IAM.
provider "aws" {
  region                  = "us-east-1"
  access_key              = var.access_key
  secret_key              = var.secret_key
  skip_metadata_api_check = true
  skip_region_validation  = true

  endpoints {
    iam = var.endpoint
    kms = var.endpoint
    sqs = var.endpoint
    sts = var.endpoint
  }

  default_tags { tags = { project = "rental" } }
}

data "aws_caller_identity" "me" {}

# The alias is there before it is first used, and the key from then on.
data "aws_kms_alias" "managed" { name = "alias/aws/sqs" }

data "aws_iam_policy_document" "trust" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = var.changed ? ["lambda.amazonaws.com", "events.amazonaws.com"] : ["lambda.amazonaws.com"]
    }
  }
  statement {
    sid     = "people"
    actions = ["sts:AssumeRole"]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_user.ann.arn, "arn:aws:iam::${data.aws_caller_identity.me.account_id}:root"]
    }
    condition {
      test     = "StringEquals"
      variable = "sts:ExternalId"
      values   = ["orders"]
    }
  }
}

data "aws_iam_policy_document" "federated" {
  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]
    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.ci.arn]
    }
    condition {
      test     = "StringLike"
      variable = "token.actions.example.com:sub"
      values   = ["repo:godwit/*"]
    }
  }
}

data "aws_iam_policy_document" "send" {
  statement {
    sid       = "Send"
    actions   = var.changed ? ["sqs:SendMessage", "sqs:GetQueueUrl"] : ["sqs:SendMessage"]
    resources = ["arn:aws:sqs:*:${data.aws_caller_identity.me.account_id}:orders-$${aws:username}"]
  }
  statement {
    effect    = "Deny"
    actions   = ["sqs:*"]
    resources = ["*"]
    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
    condition {
      test     = "NotIpAddress"
      variable = "aws:SourceIp"
      values   = ["10.0.0.0/8", "127.0.0.1/32"]
    }
  }
}

data "aws_iam_policy_document" "key" {
  statement {
    sid       = "root"
    actions   = ["kms:*"]
    resources = ["*"]
    principals {
      type        = "AWS"
      identifiers = ["arn:aws:iam::${data.aws_caller_identity.me.account_id}:root"]
    }
  }
  statement {
    sid       = "worker"
    actions   = var.changed ? ["kms:Decrypt", "kms:GenerateDataKey*"] : ["kms:Decrypt"]
    resources = ["*"]
    principals {
      type        = "AWS"
      identifiers = [aws_iam_role.worker.arn]
    }
  }
}

resource "aws_iam_policy" "cap" {
  name   = "cap"
  path   = "/caps/"
  policy = jsonencode({ Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "*", Resource = "*" }] })
}

resource "aws_iam_policy" "send" {
  name        = "send"
  description = "to send orders"
  policy      = data.aws_iam_policy_document.send.json
  tags        = var.changed ? { team = "b", more = "" } : { team = "a" }
}

resource "aws_iam_role" "worker" {
  name                  = "worker"
  path                  = "/orders/"
  description           = var.changed ? "" : "works on orders"
  assume_role_policy    = data.aws_iam_policy_document.trust.json
  max_session_duration  = var.changed ? 7200 : 3600
  permissions_boundary  = var.changed ? null : aws_iam_policy.cap.arn
  force_detach_policies = true
  tags                  = var.changed ? { team = "b", more = "" } : { team = "a" }
}

resource "aws_iam_role" "ci" {
  name_prefix        = "ci-"
  assume_role_policy = data.aws_iam_policy_document.federated.json
}

resource "aws_iam_role" "plain" {
  name = "plain"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = { Effect = "Allow", Principal = { AWS = "*" }, Action = "sts:AssumeRole" }
  })
}

resource "aws_iam_role_policy" "worker" {
  name   = "inline"
  role   = aws_iam_role.worker.id
  policy = data.aws_iam_policy_document.send.json
}

resource "aws_iam_role_policy_attachment" "send" {
  role       = aws_iam_role.worker.name
  policy_arn = aws_iam_policy.send.arn
}

resource "aws_iam_role_policy_attachment" "basic" {
  role       = aws_iam_role.worker.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/${var.changed ? "AWSLambdaSQSQueueExecutionRole" : "AWSLambdaBasicExecutionRole"}"
}

resource "aws_iam_instance_profile" "worker" {
  name = "worker"
  role = var.changed ? aws_iam_role.plain.name : aws_iam_role.worker.name
  tags = var.changed ? { team = "b" } : { team = "a" }
}

resource "aws_iam_user" "ann" {
  name                 = var.changed ? "ann.b" : "ann"
  path                 = var.changed ? "/people/b/" : "/people/"
  permissions_boundary = var.changed ? aws_iam_policy.cap.arn : null
  force_destroy        = true
  tags                 = var.changed ? { team = "b", more = "" } : { team = "a" }
}

resource "aws_iam_user" "bob" {
  name          = "bob"
  force_destroy = true
}

resource "aws_iam_user_policy" "bob" {
  name   = "inline"
  user   = aws_iam_user.bob.name
  policy = data.aws_iam_policy_document.send.json
}

resource "aws_iam_user_policy_attachment" "bob" {
  user       = aws_iam_user.bob.name
  policy_arn = aws_iam_policy.send.arn
}

resource "aws_iam_access_key" "bob" {
  user   = aws_iam_user.bob.name
  status = var.changed ? "Inactive" : "Active"
}

resource "aws_iam_group" "clerks" {
  name = var.changed ? "clerks-b" : "clerks"
  path = var.changed ? "/staff/" : "/"
}

resource "aws_iam_group_policy" "clerks" {
  name   = "inline"
  group  = aws_iam_group.plain.name
  policy = data.aws_iam_policy_document.send.json
}

resource "aws_iam_group_policy_attachment" "clerks" {
  group      = aws_iam_group.plain.name
  policy_arn = aws_iam_policy.send.arn
}

resource "aws_iam_group" "plain" { name = "plain" }

resource "aws_iam_group_membership" "plain" {
  name  = "plain"
  group = aws_iam_group.plain.name
  users = var.changed ? [aws_iam_user.bob.name, aws_iam_user.ann.name] : [aws_iam_user.bob.name]
}

resource "aws_iam_openid_connect_provider" "ci" {
  url             = "https://token.actions.example.com"
  client_id_list  = var.changed ? ["sts.amazonaws.com", "orders"] : ["sts.amazonaws.com"]
  thumbprint_list = [var.changed ? "1c58a3a8518e8759bf075b76b750d4f2df264fcd" : "9e99a48a9960b14926bb7f3b02e22da2b0ab7280"]
  tags            = var.changed ? { team = "b" } : { team = "a" }
}

resource "aws_kms_key" "orders" {
  description             = var.changed ? "orders and more" : "orders"
  deletion_window_in_days = 7
  enable_key_rotation     = var.changed
  rotation_period_in_days = var.changed ? 180 : null
  policy                  = data.aws_iam_policy_document.key.json
  tags                    = var.changed ? { team = "b", more = "" } : { team = "a" }
}

resource "aws_kms_key" "plain" {
  is_enabled              = !var.changed
  deletion_window_in_days = 7
}

resource "aws_kms_key" "sign" {
  key_usage                = "SIGN_VERIFY"
  customer_master_key_spec = "ECC_NIST_P256"
  deletion_window_in_days  = 7
}

resource "aws_kms_key" "mac" {
  key_usage                = "GENERATE_VERIFY_MAC"
  customer_master_key_spec = "HMAC_256"
  deletion_window_in_days  = 7
}

resource "aws_kms_alias" "orders" {
  name          = "alias/orders"
  target_key_id = var.changed ? aws_kms_key.plain.key_id : aws_kms_key.orders.key_id
}

resource "aws_kms_grant" "worker" {
  name              = "worker"
  key_id            = aws_kms_key.orders.key_id
  grantee_principal = aws_iam_role.worker.arn
  operations        = ["Encrypt", "Decrypt", "GenerateDataKey"]
  constraints {
    encryption_context_subset = { queue = "orders" }
  }
}

resource "aws_kms_grant" "retired" {
  key_id                = aws_kms_key.orders.arn
  grantee_principal     = aws_iam_role.plain.arn
  retiring_principal    = aws_iam_role.worker.arn
  operations            = ["DescribeKey", "RetireGrant"]
  retire_on_delete      = false
  grant_creation_tokens = []
}

output "account" { value = data.aws_caller_identity.me.account_id }
output "caller" { value = data.aws_caller_identity.me.arn }
