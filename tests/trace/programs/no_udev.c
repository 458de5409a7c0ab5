/* Debian has no archive of libudev, and of the functions that hwloc calls in fully static programs none matters: it asks
   for the names of disks. They say that there are none. */
#include <stddef.h>

void* udev_new(void) { return NULL; }
void* udev_unref(void* context) { return context; }
void* udev_device_new_from_subsystem_sysname(void* context, const char* subsystem, const char* name) {
    (void)context, (void)subsystem, (void)name;
    return NULL;
}
void* udev_device_unref(void* device) { return device; }
const char* udev_device_get_property_value(void* device, const char* key) {
    (void)device, (void)key;
    return NULL;
}
