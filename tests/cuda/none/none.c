/* A library that has no function of the vendor's: it stands beside the double of the driver under names of
 * libraries that may be on this machine, so that tests of plugin cuda use none unless they ask for a double.
 */
extern const char none_of_these[];
const char none_of_these[] = "no function";
