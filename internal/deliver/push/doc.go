// Package pushsender delivers to endpoints of push platforms: to Apple's service, APNs, and
// to Google's, FCM, over HTTP/2. It renders the notifications; a Gateway sends them, or the
// outbox of development, which only stores them.
//
// A token that a platform does not know any more disables its endpoint before the attempt
// ends, so that a crash cannot lose this.
package pushsender
