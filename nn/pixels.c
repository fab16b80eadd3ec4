/* Resizing for nn: the code that the plugin image has, too. */
#include "../plugins/common/pixels.inc"
