# Runs at the beginning of an installation: writes down which of the usual folders are there already, so that
# `uninstall` leaves them alone. A second installation over the first does not count; packages are none.
cmake_policy(VERSION 3.25)
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
string(SHA256 id "${prefix}")
string(SUBSTRING ${id} 0 16 id)
set(kept ${BUILD}/install-kept-${id}.txt)
if(NOT EXISTS ${kept} AND NOT prefix MATCHES "/_CPack_Packages/")
    set(there "")
    foreach(folder "" /bin /include /share "/${LIBDIR}" "/${LIBDIR}/pkgconfig" "/${LIBDIR}/cmake" /lib /share/man
            /share/man/man1 /share/man/man5 /share/man/man7 /share/bash-completion /share/bash-completion/completions
            /share/zsh /share/zsh/site-functions /share/fish /share/fish/vendor_completions.d)
        if(IS_DIRECTORY "${prefix}${folder}")
            string(APPEND there "${prefix}${folder}\n")
        endif()
    endforeach()
    file(WRITE ${kept} "${there}")
endif()
