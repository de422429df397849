// Package pushsender delivers to endpoints of push platforms: to Apple's service, APNs, and
// to Google's, FCM, over HTTP/2. What a device gets is rendered here; a Gateway takes it
// further, or the outbox of development, which keeps it and sends none.
//
// A token that a platform does not know any more disables its endpoint before the attempt
// ends, so that no crash forgets it.
package pushsender
