terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
}

variable "endpoint" { type = string }
variable "code" { type = string }

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
    cloudwatch = var.endpoint
    lambda     = var.endpoint
    logs       = var.endpoint
    sns        = var.endpoint
    sqs        = var.endpoint
  }

  default_tags { tags = { project = "rental" } }
}

locals {
  retries = {
    http = {
      defaultHealthyRetryPolicy = {
        minDelayTarget     = 1
        maxDelayTarget     = var.changed ? 8 : 4
        numRetries         = 5
        numNoDelayRetries  = 1
        numMinDelayRetries = 1
        numMaxDelayRetries = 1
        backoffFunction    = "linear"
      }
      disableSubscriptionOverrides = false
      defaultRequestPolicy         = { headerContentType = "application/json" }
    }
  }
}

resource "aws_sqs_queue" "dead" {
  name                      = "orders-dead"
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue" "orders" {
  name                       = "orders"
  visibility_timeout_seconds = var.changed ? 90 : 60
  delay_seconds              = var.changed ? 5 : 0
  receive_wait_time_seconds  = 20
  max_message_size           = 131072
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = var.changed ? 5 : 3 })
  tags                       = var.changed ? { team = "b", more = "" } : { team = "a" }
}

resource "aws_sqs_queue_redrive_allow_policy" "dead" {
  queue_url            = aws_sqs_queue.dead.id
  redrive_allow_policy = jsonencode({ redrivePermission = "byQueue", sourceQueueArns = [aws_sqs_queue.orders.arn] })
}

resource "aws_sqs_queue" "plain" { name = "plain" }

resource "aws_sqs_queue" "steps" {
  name                        = "steps.fifo"
  fifo_queue                  = true
  content_based_deduplication = var.changed
  deduplication_scope         = "messageGroup"
  fifo_throughput_limit       = "perMessageGroupId"
  sqs_managed_sse_enabled     = true
}

resource "aws_sqs_queue_policy" "orders" {
  queue_url = aws_sqs_queue.orders.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "topics"
      Effect    = "Allow"
      Principal = { Service = "sns.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.orders.arn
      Condition = { ArnEquals = { "aws:SourceArn" = aws_sns_topic.orders.arn } }
    }]
  })
}

resource "aws_sns_topic" "orders" {
  name              = "orders"
  display_name      = var.changed ? "Orders" : "orders"
  delivery_policy   = jsonencode(local.retries)
  signature_version = 2
  tracing_config    = "PassThrough"
  tags              = { team = var.changed ? "b" : "a" }
}

resource "aws_sns_topic" "plain" { name = "plain" }

resource "aws_sns_platform_application" "shop" {
  name                             = "shop"
  platform                         = "GCM"
  platform_credential              = jsonencode({ type = "service_account", project_id = "shop" })
  event_delivery_failure_topic_arn = aws_sns_topic.plain.arn
  success_feedback_sample_rate     = var.changed ? "50" : "10"
}

resource "aws_sns_platform_application" "shop_ios" {
  name                             = "shop"
  platform                         = "APNS"
  platform_principal               = "KEY1234567"
  platform_credential              = "the key"
  apple_platform_team_id           = "TEAM123456"
  apple_platform_bundle_id         = "dev.godwit.shop"
  event_endpoint_created_topic_arn = var.changed ? aws_sns_topic.plain.arn : null
}

resource "aws_sns_topic" "steps" {
  name                        = "steps.fifo"
  fifo_topic                  = true
  content_based_deduplication = true
  fifo_throughput_scope       = "MessageGroup"
}

resource "aws_sns_topic_policy" "orders" {
  arn = aws_sns_topic.orders.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "publish"
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::111111111111:root" }
      Action    = "sns:Publish"
      Resource  = aws_sns_topic.orders.arn
    }]
  })
}

resource "aws_sns_topic_subscription" "queue" {
  topic_arn            = aws_sns_topic.orders.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.orders.arn
  raw_message_delivery = var.changed
  filter_policy        = jsonencode({ status = var.changed ? ["confirmed", "canceled"] : ["confirmed"] })
  filter_policy_scope  = var.changed ? "MessageBody" : "MessageAttributes"
  redrive_policy       = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn })
}

resource "aws_sns_topic_subscription" "phone" {
  topic_arn     = aws_sns_topic.orders.arn
  protocol      = "sms"
  endpoint      = "+15551234567"
  filter_policy = jsonencode({ status = ["late"] })
}

resource "aws_sns_topic_data_protection_policy" "plain" {
  arn = aws_sns_topic.plain.arn
  policy = jsonencode({
    Name    = "plain"
    Version = "2021-06-01"
    Statement = [{
      Sid            = "mail"
      DataDirection  = "Inbound"
      Principal      = ["*"]
      DataIdentifier = ["arn:aws:dataprotection::aws:data-identifier/EmailAddress"]
      Operation      = var.changed ? { Deidentify = { RedactConfig = {} }, Deny = null } : { Deidentify = null, Deny = {} }
    }]
  })
}

resource "aws_sns_sms_preferences" "phones" {
  monthly_spend_limit = var.changed ? 20 : 10
  default_sms_type    = "Transactional"
  default_sender_id   = var.changed ? "Orders" : null
}

resource "aws_sns_topic_subscription" "steps" {
  topic_arn = aws_sns_topic.steps.arn
  protocol  = "sqs"
  endpoint  = aws_sqs_queue.steps.arn
}

resource "aws_sns_topic_subscription" "function" {
  topic_arn = aws_sns_topic.orders.arn
  protocol  = "lambda"
  endpoint  = aws_lambda_function.billing.arn
}

resource "aws_lambda_function" "billing" {
  function_name    = "billing"
  role             = "arn:aws:iam::000000000000:role/billing"
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  filename         = var.code
  source_code_hash = filebase64sha256(var.code)
  description      = var.changed ? "bills" : "bills orders"
  memory_size      = var.changed ? 256 : 128
  timeout          = 10
  publish          = true
  architectures    = ["x86_64"]

  reserved_concurrent_executions = var.changed ? 5 : -1

  environment { variables = var.changed ? { MODE = "b" } : { MODE = "a", MORE = "x" } }
  dead_letter_config { target_arn = aws_sqs_queue.dead.arn }
  ephemeral_storage { size = 1024 }
  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.billing.name
  }
  tags = { team = var.changed ? "b" : "a" }
}

resource "aws_lambda_function" "small" {
  function_name = "small"
  role          = "arn:aws:iam::000000000000:role/small"
  runtime       = "provided.al2023"
  handler       = "bootstrap"
  filename      = var.code
}

resource "aws_lambda_alias" "live" {
  name             = "live"
  description      = var.changed ? "in use" : ""
  function_name    = aws_lambda_function.billing.function_name
  function_version = aws_lambda_function.billing.version
}

resource "aws_lambda_event_source_mapping" "orders" {
  event_source_arn        = aws_sqs_queue.orders.arn
  function_name           = aws_lambda_alias.live.arn
  batch_size              = var.changed ? 5 : 10
  enabled                 = !var.changed
  function_response_types = ["ReportBatchItemFailures"]
  scaling_config { maximum_concurrency = var.changed ? 4 : 2 }
  filter_criteria {
    filter { pattern = jsonencode({ body = { status = ["confirmed"] } }) }
  }
  tags = { team = "a" }
}

resource "aws_lambda_event_source_mapping" "plain" {
  event_source_arn = aws_sqs_queue.plain.arn
  function_name    = aws_lambda_function.small.arn
}

resource "aws_lambda_permission" "orders" {
  statement_id  = "orders"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.billing.function_name
  principal     = "sns.amazonaws.com"
  source_arn    = aws_sns_topic.orders.arn
}

resource "aws_lambda_permission" "live" {
  statement_id  = "live"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.billing.function_name
  qualifier     = aws_lambda_alias.live.name
  principal     = "arn:aws:iam::111111111111:root"
}

resource "aws_lambda_function_event_invoke_config" "billing" {
  function_name                = aws_lambda_function.billing.function_name
  maximum_retry_attempts       = var.changed ? 0 : 1
  maximum_event_age_in_seconds = 120
  destination_config {
    on_failure { destination = aws_sqs_queue.dead.arn }
  }
}

resource "aws_cloudwatch_log_group" "billing" {
  name              = "/shop/billing"
  retention_in_days = var.changed ? 14 : 7
  tags              = { team = var.changed ? "b" : "a" }
}

resource "aws_cloudwatch_log_group" "plain" { name = "/shop/plain" }

resource "aws_cloudwatch_log_stream" "audit" {
  name           = "audit"
  log_group_name = aws_cloudwatch_log_group.plain.name
}

resource "aws_cloudwatch_log_metric_filter" "errors" {
  name           = "errors"
  log_group_name = aws_cloudwatch_log_group.billing.name
  pattern        = var.changed ? "?ERROR ?FATAL" : "ERROR"

  metric_transformation {
    name          = "Errors"
    namespace     = "Shop"
    value         = "1"
    default_value = var.changed ? 0 : null
    unit          = var.changed ? "Count" : null
  }
}

resource "aws_cloudwatch_log_metric_filter" "took" {
  name           = var.changed ? "took" : "latency"
  log_group_name = aws_cloudwatch_log_group.plain.name
  pattern        = "{ $.took = * }"

  metric_transformation {
    name       = "Took"
    namespace  = "Shop"
    value      = "$.took"
    unit       = "Milliseconds"
    dimensions = var.changed ? { path = "$.path", status = "$.status" } : { path = "$.path" }
  }
}

# Its pattern is empty: it matches every event.
resource "aws_cloudwatch_log_metric_filter" "lines" {
  name           = "lines"
  log_group_name = aws_cloudwatch_log_group.plain.name
  pattern        = ""

  metric_transformation {
    name          = "Lines"
    namespace     = "Shop"
    value         = var.changed ? "2" : "1"
    default_value = "0"
  }
}

resource "aws_cloudwatch_metric_alarm" "logged" {
  alarm_name          = "errors-logged"
  comparison_operator = "GreaterThanThreshold"
  evaluation_periods  = 1
  metric_name         = aws_cloudwatch_log_metric_filter.errors.metric_transformation[0].name
  namespace           = aws_cloudwatch_log_metric_filter.errors.metric_transformation[0].namespace
  period              = 60
  statistic           = "Sum"
  threshold           = var.changed ? 5 : 0
}

# It is on metric math, and after the change on one metric.
resource "aws_cloudwatch_metric_alarm" "failing" {
  alarm_name          = "failing"
  comparison_operator = "GreaterThanOrEqualToThreshold"
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 10
  alarm_actions       = [aws_sns_topic.plain.arn]
  metric_name         = var.changed ? "NumberOfNotificationsFailed" : null
  namespace           = var.changed ? "AWS/SNS" : null
  period              = var.changed ? 60 : null
  statistic           = var.changed ? "Sum" : null

  dynamic "metric_query" {
    for_each = var.changed ? [] : ["IF(all > 0, 100 * failed / all, 0)"]
    content {
      id          = "share"
      label       = "Failed, in %"
      expression  = metric_query.value
      return_data = true
    }
  }
  dynamic "metric_query" {
    for_each = var.changed ? {} : { failed = "NumberOfNotificationsFailed", all = "NumberOfMessagesPublished" }
    content {
      id = metric_query.key
      metric {
        namespace   = "AWS/SNS"
        metric_name = metric_query.value
        period      = 60
        stat        = "Sum"
        dimensions  = { TopicName = aws_sns_topic.plain.name }
      }
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "dead" {
  alarm_name          = "dead-letters"
  alarm_description   = "something was given up"
  comparison_operator = "GreaterThanThreshold"
  evaluation_periods  = 1
  metric_name         = "ApproximateNumberOfMessagesVisible"
  namespace           = "AWS/SQS"
  period              = 60
  statistic           = "Maximum"
  threshold           = var.changed ? 5 : 0
  treat_missing_data  = "notBreaching"
  alarm_actions       = [aws_sns_topic.plain.arn]
  ok_actions          = var.changed ? [aws_sns_topic.plain.arn] : []
  dimensions          = { QueueName = aws_sqs_queue.dead.name }
  tags                = { team = var.changed ? "b" : "a" }
}

resource "aws_cloudwatch_composite_alarm" "lost" {
  alarm_name        = "lost"
  alarm_description = "something was not delivered"
  alarm_actions     = [aws_sns_topic.plain.arn]
  ok_actions        = var.changed ? [] : [aws_sns_topic.plain.arn]
  alarm_rule        = "ALARM(\"${aws_cloudwatch_metric_alarm.failing.alarm_name}\")${var.changed ? " OR" : " AND NOT"} OK(${aws_cloudwatch_metric_alarm.dead.arn})"

  actions_suppressor {
    alarm            = var.changed ? aws_cloudwatch_composite_alarm.maintenance.alarm_name : aws_cloudwatch_metric_alarm.dead.alarm_name
    wait_period      = var.changed ? 0 : 60
    extension_period = 30
  }
  tags = { team = var.changed ? "b" : "a" }
}

resource "aws_cloudwatch_composite_alarm" "maintenance" {
  alarm_name = "maintenance"
  alarm_rule = "FALSE"

  dynamic "actions_suppressor" { # which the change takes away
    for_each = var.changed ? [] : [aws_cloudwatch_metric_alarm.failing.arn]
    content {
      alarm            = actions_suppressor.value
      wait_period      = 10
      extension_period = 10
    }
  }
}

output "queue" { value = aws_sqs_queue.orders.id }
