package gateway

// TwilioSigned is what a request is verified by.
var TwilioSigned = twilioSigned
