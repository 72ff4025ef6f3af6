# pip and pip3 are what they were before `rocmpip shell-init powershell`.
if (Get-Variable -Name RocmpipBefore -Scope Global -ErrorAction Ignore) {
    Remove-Item Alias:pip, Alias:pip3, Function:Invoke-Rocmpip -Force -ErrorAction Ignore
    foreach ($name in $global:RocmpipBefore.Keys) {
        Set-Alias -Name $name -Value $global:RocmpipBefore[$name] -Scope Global
    }
    Register-ArgumentCompleter -Native -CommandName rocmpip, pip, pip3 -ScriptBlock { }
    Remove-Variable -Name RocmpipBefore -Scope Global
}
