package pg

var WaitForNotificationEvery = waitForNotification
