# pip and pip3 are rocmpip in this shell. To load it at every start: rocmpip shell-init powershell | Out-String | Invoke-Expression in $PROFILE
if (-not (Get-Variable -Name RocmpipBefore -Scope Global -ErrorAction Ignore)) {
    $global:RocmpipBefore = @{}
    foreach ($name in 'pip', 'pip3') {
        $known = Get-Alias -Name $name -Scope Global -ErrorAction Ignore
        if ($known) { $global:RocmpipBefore[$name] = $known.Definition }
    }
}
function global:Invoke-Rocmpip { $input | & @COMMAND@ @args }
Set-Alias -Name pip -Value Invoke-Rocmpip -Scope Global -Force
Set-Alias -Name pip3 -Value Invoke-Rocmpip -Scope Global -Force
Register-ArgumentCompleter -Native -CommandName rocmpip, pip, pip3 -ScriptBlock {
    param($word, $line, $position)
    try {
        $env:COMP_WORDS = $line.ToString()
        $env:COMP_CWORD = $line.CommandElements.Count - [int]($word -ne '')
        $env:PIP_AUTO_COMPLETE = '1'
        (& @COMMAND@ 2>$null) -split '\s+' | Where-Object { $_ } | ForEach-Object {
            [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
        }
    } finally {
        Remove-Item Env:COMP_WORDS, Env:COMP_CWORD, Env:PIP_AUTO_COMPLETE -ErrorAction Ignore
    }
}
