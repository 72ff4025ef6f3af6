# pip and pip3 are what they were before `rocmpip shell-init fish`.
if set -q __rocmpip_before
    functions -e pip pip3 __rocmpip_complete
    complete -c rocmpip -e
    complete -c pip -e -w rocmpip
    complete -c pip3 -e -w rocmpip
    string join \n -- $__rocmpip_before | source
    set -e __rocmpip_before
end
